"""Files below a folder and never outside of it; texts as names of files and folders, and back."""

from __future__ import annotations

import os
import stat
import unicodedata
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from ally.errors import DataError, LabelError

MIME = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".heic": "image/heic",
    ".heif": "image/heif",
    ".jfif": "image/jpeg",
    ".jp2": "image/jp2",
    ".jpe": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".pgm": "image/x-portable-graymap",
    ".png": "image/png",
    ".ppm": "image/x-portable-pixmap",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".webp": "image/webp",
}
PICTURES = (
    *(".ai", ".arw", ".cr2", ".cr3", ".dng", ".eps", ".exr", ".hdr", ".ico", ".jxl", ".nef"),
    *(".orf", ".pcx", ".pef", ".psd", ".raf", ".raw", ".rw2", ".svg", ".tga", ".xcf"),
)
"""Endings of pictures that are not read; a folder that holds some says so."""


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
        raise DataError(f"{name!r} is missing; put it back or leave it out") from error
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
        raise DataError(f"{path} is missing ({os_reason(error)}); put it back") from error
    return state.st_size, state.st_mtime_ns, state.st_ino


def ensure_readable(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"{path} is {'a folder' if path.is_dir() else 'missing'}; give the path of a file")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path} cannot be read (permission denied); change its permissions")


def open_regular(path: Path) -> IO[bytes]:
    """The bytes of a regular file; opening a pipe or a device in its place would wait, or act."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise DataError(f"{path.name!r} is not a regular file; put a copy of the file there")
    return os.fdopen(file, "rb")


KEPT = frozenset(" -_.,()+&@!~")
RESERVED = frozenset(
    {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))}
)
"""Names that one operating system gives to devices."""
LONGEST = 255


def file_name(text: str) -> str:
    """A safe name: what is not a letter, a digit or a harmless mark is written as ``%`` and two digits per byte."""
    if not text:
        raise LabelError("an empty text cannot be the name of a folder or a file; rename the class, or export to CSV")
    composed = unicodedata.normalize("NFC", text) == text
    found = [
        char if char in KEPT or (char.isalnum() and (composed or char.isascii())) else _escape(char) for char in text
    ]
    if text[0] in ". -" or text.split(".")[0].upper() in RESERVED:
        found[0] = _escape(text[0])
    if text[-1] in ". ":
        found[-1] = _escape(text[-1])
    name = "".join(found)
    if len(name.encode()) > LONGEST:
        raise LabelError(
            f"{text[:40]!r}… is too long for the name of a file ({len(name.encode())} bytes of {LONGEST}); export to "
            "CSV instead"
        )
    return name


def text_of(name: str) -> str:
    """What `file_name` was given; a name it would not have made is left as it is."""
    try:
        text = unquote(name, errors="strict")
        return text if file_name(text) == name else name
    except (UnicodeDecodeError, LabelError):
        return name


def _escape(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8"))
