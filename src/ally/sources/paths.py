"""Files below a folder, and never outside of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ally.errors import DataError

MIME = {
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".pgm": "image/x-portable-graymap",
    ".png": "image/png",
    ".ppm": "image/x-portable-pixmap",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".webp": "image/webp",
}


def is_image(name: str) -> bool:
    return name.lower().endswith(tuple(MIME))


def inside(folder: Path, name: str) -> Path:
    """The real file that the relative POSIX path `name` stands for. Raises if it is none, or lies outside `folder`,
    links followed."""
    parts = name.split("/")
    if (
        not name
        or "\0" in name
        or "\\" in name
        or ".." in parts
        or name.startswith("/")
        or (len(parts[0]) == 2 and parts[0][1] == ":")
    ):
        raise DataError(
            f"{name!r} is not a path below {folder}; give it relative to that folder, without '..' and backslashes"
        )
    try:
        path = (folder / name).resolve(strict=True)
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise DataError(f"{name!r} is not there; put it back or leave it out") from error
    except (OSError, RuntimeError) as error:
        reason = (
            "its links form a loop" if isinstance(error, RuntimeError) or "symbolic" in str(error) else os_reason(error)
        )
        raise DataError(f"{name!r} cannot be opened ({reason}); correct it or leave it out") from error
    if not path.is_relative_to(folder.resolve()):
        raise DataError(f"{name!r} is a link that leads outside {folder}; copy the file into the folder")
    if not stat.S_ISREG(mode):
        raise DataError(
            f"{name!r} is {'a folder' if stat.S_ISDIR(mode) else 'not a regular file'}; an image file is needed"
        )
    return path


def os_reason(error: BaseException) -> str:
    """An error of the system in its own few words, without paths."""
    return (
        (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error) or type(error).__name__
    )


def file_stamp(path: Path) -> tuple[int, ...]:
    """Size, time and number of a file: they change when it changes."""
    try:
        state = path.stat()
    except OSError as error:
        raise DataError(f"{path} is not there any more ({os_reason(error)}); put it back") from error
    return state.st_size, state.st_mtime_ns, state.st_ino


def ensure_readable(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; give the path of a file")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path} may not be read (permission denied); change its permissions")
