"""Waiting in line: processes that want the database for themselves take turns on a file beside it.

SQLite's own waiting is by trying again after pauses that grow to a tenth of a second; among several busy programs some get no turn for
seconds. The kernel wakes those who wait for a lock on this file in turn. It is a courtesy and nothing rests on it: who waited too long
goes on, and SQLite's lock decides. The file is empty and may be deleted.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Turns:
    """Locks belong to the process: they end with it, and a fork does not inherit them."""

    def __init__(self, path: Path) -> None:
        self._file: int | None
        self._waiters: list[_Waiter] = []
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
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
