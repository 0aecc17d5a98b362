"""Copies of a campaign, always as a SQLite file, written under a temporary name and renamed when complete."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from ally.errors import StoreError, StoreExists, StoreReadOnly
from ally.files import flush


def next_backup(path: Path) -> Path:
    """``pets.db.backup-0001``, the first number above those that exist."""
    numbers = [number for number, _ in _backups(path)]
    return path.with_name(f"{path.name}.backup-{max(numbers, default=0) + 1:04d}")


def newest_backup(path: Path) -> Path | None:
    return max(_backups(path), default=(0, None))[1]


def _backups(path: Path) -> list[tuple[int, Path]]:
    # More digits are not ours, and a number above theirs might not fit into a name.
    pattern = re.compile(re.escape(path.name) + r"\.backup-([0-9]{4,9})")
    matches = (
        ((pattern.fullmatch(other.name), other) for other in path.parent.iterdir()) if path.parent.is_dir() else ()
    )
    return [(int(match[1]), other) for match, other in matches if match]


def copy_file(source: sqlite3.Connection, target: Path, mode: int) -> Path:
    """Copies by SQLite's backup, in one piece: others who write wait for a third of a second per 100 MB. In several
    steps it would restart whenever someone writes, and might never finish."""
    aside = building_name(target)
    try:
        _make_empty(aside, mode)
        with closing(sqlite3.connect(aside)) as copy:
            source.backup(copy)
        put_in_place(aside, target)
    finally:
        aside.unlink(missing_ok=True)
    return target


def _make_empty(aside: Path, mode: int) -> None:
    """Nobody may read a copy who may not read the campaign."""
    try:
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode & 0o666 | 0o600))
    except OSError as error:
        raise StoreReadOnly(
            f"no backup can be written to {aside.parent} ({error.strerror}); name a file in another folder"
        ) from error


def building_name(target: Path) -> Path:
    if target.exists():
        raise StoreExists(f"{target} exists already; choose another name, or move it away")
    if not target.parent.is_dir():
        raise StoreError(f"the folder {target.parent} does not exist; create it first")
    # Two containers that share a folder may have the same process number.
    return target.with_name(f"{target.name}.building-{os.getpid()}-{secrets.token_hex(3)}")


def put_in_place(aside: Path, target: Path) -> None:
    """Gives a finished file its name, on disk when this returns, and never over another file."""
    flush(aside)
    try:
        os.link(aside, target)
        aside.unlink()
    except FileExistsError:
        raise StoreExists(f"{target} exists already; choose another name, or move it away") from None
    except OSError:
        # A file system without hard links.
        if target.exists():
            raise StoreExists(f"{target} exists already; choose another name, or move it away") from None
        aside.rename(target)
    flush(target.parent)
