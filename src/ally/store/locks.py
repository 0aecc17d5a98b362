"""Locks among programs.

One at a time: who holds a name is the only one of all processes and threads, until they leave or die.

The kernel (a lock on a file beside the campaign) or the server (a lock of a session) keeps who holds it and ends it
with them, so that nothing is left to clean up. Waiting is by trying again: neither knows a waiting with an end for all
that is needed here.

Waiting in line: processes that want the database for themselves take turns on a file beside it.

SQLite's own waiting is by trying again after pauses that grow to a tenth of a second; among several busy programs some
get no turn for seconds. The kernel wakes those who wait for a lock on this file in turn. It is a courtesy and nothing
rests on it: who waited too long goes on, and SQLite's lock decides. The file is empty and may be deleted.
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
from ally.store.beside import open_lock_file

PAUSE = 0.02
TAKEN = ("journal", "wal", "shm", "turn")
"""Files of these names beside a campaign are SQLite's, or the line of those who wait for it."""

_guard = threading.RLock()
_open: set[int] = set()


def check_exclusive(name: str, seconds: float) -> None:
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]{0,39}", name) or name in TAKEN:
        raise InputError.about(
            "name", name, f"must be a word of letters a to z, digits and _, and none of {', '.join(TAKEN)}"
        )
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
def exclusive_by_lock(lock: threading.Lock, seconds: float) -> Iterator[bool]:
    mine = within(seconds, lambda: lock.acquire(blocking=False))
    try:
        yield mine
    finally:
        if mine:
            lock.release()


@contextmanager
def exclusive_by_file(campaign: Path, name: str, seconds: float) -> Iterator[bool]:
    """The file stays: whoever removed it would let another in beside one who waits for it."""
    path = campaign.with_name(f"{campaign.name}-{name}")
    with _failures(path), _guard:
        # Opened anew each time, so that threads exclude each other too.
        file = open_lock_file(path, campaign, os.O_RDONLY)
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
            raise StoreReadOnly(
                f"{path} cannot be written ({error.strerror}); change its permissions and those of its folder"
            ) from error
        raise StoreError(
            f"{path} cannot be locked ({error.strerror}); check the disk and the limit on open files"
        ) from error


# A fork copies open files, and a lock or a session lives as long as any copy does. The child's are closed at once, so
# that a child that outlives who started it holds nothing.


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


class Turns:
    """Locks belong to the process: they end with it, and a fork does not inherit them."""

    def __init__(self, campaign: Path) -> None:
        self._file: int | None
        self._waiters: list[_Waiter] = []
        try:
            self._file = open_lock_file(campaign.with_name(f"{campaign.name}-turn"), campaign, os.O_RDWR)
        except OSError:
            # A folder that cannot be written; there are no turns to take there.
            self._file = None

    @contextmanager
    def mine(self, seconds: float) -> Iterator[None]:
        """Waits for a turn, for at most `seconds`."""
        file = self._file
        if file is None or not self._take(file, seconds):
            yield
            return
        try:
            yield
        finally:
            fcntl.lockf(file, fcntl.LOCK_UN)

    def _take(self, file: int, seconds: float) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            waiter = _Waiter(file)
            self._waiters = [other for other in self._waiters if other.is_alive()] + [waiter]
            return waiter.wait(seconds)

    def close(self) -> None:
        # A waiter that is late still uses the number of the open file, which must not become that of another file.
        if self._file is not None and not any(waiter.is_alive() for waiter in self._waiters):
            os.close(self._file)
        self._file = None


class _Waiter(threading.Thread):
    """The kernel offers no lock with a time limit, so a thread waits; a lock that comes too late is given back."""

    def __init__(self, file: int) -> None:
        super().__init__(daemon=True)
        self._file = file
        self._guard = threading.Lock()
        self._has = threading.Event()
        self._late = False

    def wait(self, seconds: float) -> bool:
        """Whether the lock came in time."""
        self.start()
        try:
            self._has.wait(seconds)
        except BaseException:
            if self._settle():
                fcntl.lockf(self._file, fcntl.LOCK_UN)
            raise
        return self._settle()

    def _settle(self) -> bool:
        with self._guard:
            self._late = not self._has.is_set()
        return not self._late

    def run(self) -> None:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
        except OSError:
            # The file system has no locks.
            return
        with self._guard:
            if self._late:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
            else:
                self._has.set()
