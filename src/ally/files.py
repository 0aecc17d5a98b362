"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ally.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to. It takes the place of `path` when all went well and is on disk; otherwise it is
    removed.

    Under its name there is the old file or the new one, never a part, whoever else writes it.
    """
    # Two containers that share a folder may have the same process number.
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(3)}.part")
    try:
        yield aside
        flush(aside)
        aside.replace(path)
        flush(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """The same for content in memory."""
    with replacing(path) as aside:
        aside.write_bytes(content)


def open_in_place(path: Path, flags: int) -> int:
    """A descriptor of a regular file of that very name, made where `flags` say so. A link is not followed: in a folder
    that somebody else made it could lead to any file of the user."""
    if path.is_symlink():
        raise InputError(f"{path} is a link, and is not followed; remove it")
    try:
        file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
    else:
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
    raise InputError(f"{path} is a link or no regular file, and is not followed; remove it")


def flush(path: Path) -> None:
    """Waits until a file or a folder is on disk. Never call it on a file that SQLite has open: closing it would drop
    SQLite's locks."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
