"""Where a Python that is started here looks for modules: not in the current folder, which may have come from somebody
else. A json.py there would be run in the place of Python's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "-P"
"""The option of Python."""
VARIABLE = "PYTHONSAFEPATH"


@contextmanager
def use_safe_path() -> Iterator[None]:
    """The same for processes that libraries start meanwhile."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
