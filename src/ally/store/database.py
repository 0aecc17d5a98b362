"""A database that takes one writer at a time, on every backend.

A writing transaction holds the write lock from its first statement to its end (SQLite: BEGIN IMMEDIATE;
PostgreSQL: an advisory lock). So what it reads is still true when it writes, numbers are assigned without gaps in
commit order, and all code above this file is the same for every backend. Transactions are short: large writes are
split into chunks.
"""

from __future__ import annotations

import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, MultipleResultsFound, NoResultFound

from ally.errors import InputError, StoreBusy, StoreDamaged, StoreError
from ally.store.locks import check_exclusive

T = TypeVar("T")
P = ParamSpec("P")
Work = Callable[[Connection], T]

PATIENCE = 60.0
"""Seconds that a call waits for others before it gives up with `StoreBusy`."""


class Database(ABC):
    """Runs work in transactions; every failure of the backend leaves as a `StoreError`."""

    def __init__(self, name: str, engine: Engine, patience: float = PATIENCE) -> None:
        self.name = name
        self.engine = engine
        self.patience = patience
        self._process = os.getpid()
        self._closed = False
        self._here = threading.local()

    @property
    def _joined(self) -> Connection | None:
        """The transaction that this thread is in (`together`)."""
        return getattr(self._here, "connection", None)

    def together(self, work: Callable[[], T]) -> T:
        """``work()`` in one writing transaction, which every `read` and `write` of this thread joins. A `write` that
        fails takes back what it wrote itself, and `work` may go on. It may run more than once, after a rollback."""

        def joined(connection: Connection) -> T:
            if self._joined is not None:
                return work()
            self._here.connection = connection
            try:
                return work()
            finally:
                self._here.connection = None

        return self.write(joined)

    def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """``work(connection, ...)`` on one consistent state. It may run more than once."""
        if self._joined is not None:
            with self.failures():
                return work(self._joined, *args, **kwargs)
        return self._again_while_busy(
            lambda: self._transaction(lambda connection: work(connection, *args, **kwargs), writes=False)
        )

    def write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """``work(connection, ...)`` alone among all writers; on disk when this returns. It may run more than once,
        after a rollback."""
        if self._joined is not None:
            with self.failures(), self._taken_back_together(), self._joined.begin_nested():
                return work(self._joined, *args, **kwargs)

        def attempt() -> T:
            self._here.actions = []
            found = self._transaction(lambda connection: work(connection, *args, **kwargs), writes=True)
            for action in self._here.actions:
                action()
            return found

        return self._again_while_busy(attempt)

    def when_recorded(self, action: Callable[[], None]) -> None:
        """For work that is writing: `action` runs when that is on disk, and never if it is rolled back."""
        self._here.actions.append(action)

    @contextmanager
    def _taken_back_together(self) -> Iterator[None]:
        """What fails takes its actions with it."""
        before = len(self._here.actions)
        try:
            yield
        except BaseException:
            del self._here.actions[before:]
            raise

    def write_once(self, work: Work[T]) -> T:
        """As `write`, for work that consumes something and cannot be repeated."""
        with self.failures():
            return self._transaction(work, writes=True)

    def exclusive(self, name: str, seconds: float) -> AbstractContextManager[bool]:
        """See `Store.exclusive`. It is independent of the write lock."""
        self._check_usable()
        check_exclusive(name, seconds)
        return self._alone(name, seconds)

    def close(self) -> None:
        self._closed = True
        if os.getpid() == self._process:
            self.engine.dispose()

    @contextmanager
    def failures(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            first = _find_first(error)
            raise first if isinstance(first, StoreError) else self.failure(first) from error
        except UnicodeDecodeError as error:
            # SQLite's messages have names out of the file in them.
            raise StoreDamaged(
                f"{self.name} holds a name that is no text ({error}); the campaign is damaged: restore a backup"
            ) from error
        except (NoResultFound, MultipleResultsFound) as error:
            raise StoreDamaged(
                f"{self.name} has no line or several where there must be one ({error}); the campaign is damaged: "
                "restore a backup"
            ) from error
        except OverflowError as error:
            raise InputError(
                f"a number is too large for the store ({error}); rows, queries and answers are numbered below 2**63"
            ) from error

    @abstractmethod
    def _transaction(self, work: Work[T], *, writes: bool) -> T:
        """One attempt."""

    @abstractmethod
    def _alone(self, name: str, seconds: float) -> AbstractContextManager[bool]:
        """With a name and a time that were checked."""

    @abstractmethod
    def failure(self, error: DBAPIError) -> StoreError:
        """What went wrong, in words for the user."""

    @abstractmethod
    def problems(self) -> list[str]:
        """What the backend itself finds damaged."""

    def is_known(self, campaign: str) -> bool:
        """Whether this campaign is as `ally` left it when this user had it open here. What a server holds is its own
        business."""
        return True

    def check_tables(self) -> None:
        """Before anything is read: raises `StoreDamaged` if the tables hold something that would run."""

    def remember(self, campaign: str) -> None:
        """From now on it is known."""

    def check_foreign(self, look: Work[list[str]] | None = None) -> None:
        """Looks a campaign through that this user has not had open: raises `StoreDamaged` with the first thing that is
        wrong with it, for the backend or for `look`."""

    @abstractmethod
    def prepare_upgrade(self, found: str) -> Path | None:
        """Called before the schema changes; returns the path of the backup, if one was made."""

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreError(f"the store {self.name} is closed; open it again")
        if os.getpid() != self._process:
            raise StoreError(
                f"the store {self.name} was opened by another process; open it again in each process that uses it"
            )

    def _again_while_busy(self, attempt: Callable[[], T]) -> T:
        self._check_usable()
        end = time.monotonic() + self.patience
        pause = 0.01
        while True:
            try:
                with self.failures():
                    return attempt()
            except StoreBusy:
                if time.monotonic() > end:
                    raise
            # Jitter: processes that met once should not meet again in step.
            time.sleep(pause * (0.5 + random.random()))
            pause = min(2 * pause, 0.5)


def _find_first(error: DBAPIError) -> DBAPIError | StoreError:
    """What went wrong first: a full disk ends the transaction, and then there is no savepoint to go back to."""
    first: DBAPIError | StoreError = error
    before: BaseException | None = error
    while before is not None:
        if isinstance(before, (DBAPIError, StoreError)):
            first = before
        before = before.__context__
    return first
