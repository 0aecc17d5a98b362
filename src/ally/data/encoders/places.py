"""Where vectors are kept without a campaign file to keep them beside: a folder of this machine, bounded in size."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from ally.checks import check_number
from ally.errors import StateUnavailable
from ally.state import find_cache_folder

MOST = 4.0
"""GiB that the folder of this machine may take, unless the environment variable ALLY_ENCODED_GB says otherwise."""
USED = "used"
"""The file in each folder that says when it was last used, and is locked while it is."""


def machine_folder() -> Path | None:
    """Where `ally query` and `ally bench` keep vectors; None for a user without a home."""
    with suppress(StateUnavailable):
        return find_cache_folder() / "encoded"
    return None


class InUse:
    """Marks a folder of this machine as in use until the object goes; then removes those least recently used if all
    together take too much. One in use, here or in another process, is never removed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / USED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(self._file, fcntl.LOCK_SH)
        os.utime(self._file)
        weakref.finalize(self, _left, self._file, folder.parent)


def _left(file: int, base: Path) -> None:
    os.close(file)
    keep_within(base, int(most_gib() * 2**30))


def most_gib() -> float:
    given = os.environ.get("ALLY_ENCODED_GB")
    try:
        return MOST if given is None else check_number("ALLY_ENCODED_GB", float(given), positive=True)
    except ValueError:
        return MOST


def keep_within(base: Path, most: int) -> list[Path]:
    """Removes folders below `base`, least recently used first, until the rest take at most `most` bytes. Returns those
    removed. A folder that cannot be removed is skipped and tried again next time."""
    found = []
    for folder in base.iterdir() if base.is_dir() else ():
        with suppress(OSError):
            found.append(
                ((folder / USED).stat().st_mtime, sum(file.stat().st_size for file in folder.iterdir()), folder)
            )
    total = sum(size for _, size, _ in found)
    removed = []
    for _, size, folder in sorted(found):
        if total <= most:
            break
        with suppress(OSError):
            file = os.open(folder / USED, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
                removed.append(folder)
                total -= size
            finally:
                os.close(file)
    return removed


def scratch_folder(owner: object) -> Path:
    """A folder that goes with `owner`."""
    folder = tempfile.mkdtemp(prefix="ally-encoded-")
    weakref.finalize(owner, shutil.rmtree, folder, True)
    return Path(folder)
