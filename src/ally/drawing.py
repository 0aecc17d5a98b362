"""Figures look alike everywhere, and a settings file of matplotlib in the current folder has no say in them."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType

from ally.errors import InputError

STYLE = "matplotlibrc"


@contextmanager
def use_own_style() -> Iterator[None]:
    """Matplotlib's own defaults while figures are drawn and saved. It reads ``matplotlibrc`` from the current folder,
    which may be somebody else's: that could start LaTeX. Names are drawn as they are, not read as formulas, and equal
    figures give equal files."""
    matplotlib = _import_matplotlib()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"text.parse_math": False, "svg.hashsalt": "ally"})
        yield


def _import_matplotlib() -> ModuleType:
    """It reads the file when it is imported: would wait for a pipe of that name, fail at one that is no text, and show
    lines that it does not know as they are."""
    if "matplotlib" not in sys.modules:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(STYLE).st_mode):
                raise InputError(f"{STYLE} in the current folder is not a regular file; remove it, or work elsewhere")
        logging.getLogger("matplotlib").setLevel(logging.CRITICAL)
    try:
        import matplotlib
    except (OSError, ValueError) as error:
        raise InputError(
            f"{STYLE} in the current folder cannot be read ({error}); remove it, or work elsewhere"
        ) from error
    return matplotlib
