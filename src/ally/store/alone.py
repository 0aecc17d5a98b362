"""One at a time: who holds a name is the only one of all processes and threads, until they leave or die.

The kernel (a lock on a file beside the campaign) or the server (a lock of a session) keeps who holds it and ends it with them, so that
nothing is left to clean up. Waiting is by trying again: neither knows a waiting with an end for all that is needed here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ally.checks import check_number
from ally.errors import InputError, StoreError, StoreReadOnly

PAUSE = 0.02
TAKEN = ("journal", "wal", "shm", "turn")
"""Files of these names beside a campaign are SQLite's, or the line of those who wait for it."""

_guard = threading.RLock()
_open: set[int] = set()


def check_alone(name: str, seconds: float) -> None:
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]{0,39}", name) or name in TAKEN:
        raise InputError.about("name", name, f"must be a word of letters a to z, digits and _, and none of {', '.join(TAKEN)}")
    check_number("seconds", seconds)


def within(seconds: float, attempt: Callable[[], bool]) -> bool:
    """Tries once at least; whether it came true in time."""
    end = time.monotonic() + seconds
    while not attempt():
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(PAUSE, left))
    return True


@contextmanager
def alone_by_lock(lock: threading.Lock, seconds: float) -> Iterator[bool]:
    mine = within(seconds, lambda: lock.acquire(blocking=False))
    try:
        yield mine
    finally:
        if mine:
            lock.release()


@contextmanager
def alone_by_file(path: Path, seconds: float) -> Iterator[bool]:
    """The file stays: whoever removed it would let another in beside one who waits for it."""
    with _failures(path), _guard:
        # Opened anew each time, so that threads exclude each other too.
        file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _open.add(file)
    process = os.getpid()
    try:
        with _failures(path):
            mine = within(seconds, lambda: _lock(file))
        yield mine
    finally:
        if os.getpid() == process:
            # Before it is closed: a copy of it in a process started by other means must not keep the lock.
            fcntl.flock(file, fcntl.LOCK_UN)
            forget(file)
            os.close(file)


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _failures(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreReadOnly(f"{path} cannot be written ({error.strerror}); change its permissions and those of its folder") from error
        raise StoreError(f"{path} cannot be locked ({error.strerror}); check the disk and the limit on open files") from error


# A fork copies open files, and a lock or a session lives as long as any copy does. The child's are closed at once, so that a child that
# outlives who started it holds nothing.


def remember(file: int) -> None:
    """Closes this file in every child from now on."""
    with _guard:
        _open.add(file)


def forget(file: int) -> None:
    """Before it is closed: its number may be another file's right after."""
    with _guard:
        _open.discard(file)


def _close_copies() -> None:
    for file in _open:
        os.close(file)
    _open.clear()
    _guard.release()


os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_close_copies)
