"""Files of labels that are there whole or not at all, and errors that say why not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ally.errors import DataError, LabelError
from ally.files import replacing
from ally.sources.paths import os_reason


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` when all went well, and is removed otherwise."""
    try:
        with replacing(path) as aside:
            yield aside
    except UnicodeEncodeError as error:
        raise LabelError(
            f"{error.object[:60]!r} is not valid Unicode and cannot be written to {path}; correct it"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be written ({os_reason(error)}); what was there before is unchanged") from error
