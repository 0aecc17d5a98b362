"""SQLite: a file, or memory. One connection per process, guarded by a lock; see docs/durability.md for the reasons of
every setting."""

from __future__ import annotations

import math
import os
import re
import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from sqlalchemy import Connection, RootTransaction, create_engine, event, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from ally.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreMissing, StoreReadOnly
from ally.store.backups import building_name, copy_file, newest_backup, next_backup, put_in_place
from ally.store.beside import check_beside
from ally.store.cells import find_odd_cells
from ally.store.database import PATIENCE, Database, T, Work
from ally.store.file_schema import check_schema
from ally.store.guard import guard_connection
from ally.store.known_files import FileMark, find_mark
from ally.store.locks import Turns, exclusive_by_file, exclusive_by_lock
from ally.store.numbers import pieces
from ally.store.places import check_local
from ally.store.schema import metadata
from ally.store.versions import upgrade

Journal: TypeAlias = Literal["auto", "wal", "rollback"]
PIECE = 2000
"""Lines that are copied at a time."""
STEPS = 100_000
"""Of SQLite's machine between two looks at the clock."""
LEAST_SECONDS, BYTES_PER_SECOND = 4.0, 2e6
"""What looking through a whole file may take."""
SAFE_WAL = (3, 51, 3)
"""From here on two connections may write or checkpoint a WAL file at the same moment without a risk to it."""

_SETTINGS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA cell_size_check = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA cache_size = -16000",
)
_DAMAGED = re.compile(
    "malformed|not a database|encrypted|no such table|no such column|unsupported file format|not authorized|prohibited|"
    "decode to UTF-8|datatype mismatch|too big"
)


def wal_is_safe(version: str = sqlite3.sqlite_version) -> bool:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3]) >= SAFE_WAL


class SQLite(Database):
    """`path` None is memory: it ends with the process. `building` is for a file nobody else knows of yet, and fast."""

    def __init__(
        self,
        path: Path | None,
        *,
        journal: Journal = "auto",
        building: bool = False,
        patience: float = PATIENCE,
        wait: float = 5.0,
    ) -> None:
        self.path = path
        self.building = building
        self.journal = journal if journal != "auto" else ("wal" if wal_is_safe() else "rollback")
        self._wait = min(wait, patience)
        self._mine = threading.RLock()
        self._names: dict[str, threading.Lock] = {}
        self._until = math.inf
        self._mark: FileMark | None = None
        if path is not None:
            check_local(path)
            if not building and not path.is_file():
                raise StoreMissing(f"there is no campaign at {path}; check the name, or create one")
        # A campaign may be opened through a link to its file; SQLite keeps what is beside it beside the file itself.
        self._file = None if path is None else path.resolve()
        self._line = None if self._file is None or building else Turns(self._file)
        engine = create_engine("sqlite://", creator=self._connect, poolclass=StaticPool)
        event.listen(engine, "begin", _begin)
        super().__init__(":memory:" if path is None else str(path), engine, patience)

    def _connect(self) -> sqlite3.Connection:
        if self._file is None:
            connection = self._raw(":memory:")
        else:
            check_beside(self._file)
            # quote: '?' and '#' in a name are not part of a query. rw: a file that is gone is not made again, empty.
            connection = self._raw(f"file:{quote(os.fsencode(self._file))}?mode={'rwc' if self.building else 'rw'}")
        try:
            for line in _SETTINGS:
                connection.execute(line)
            guard_connection(connection)
            connection.set_progress_handler(lambda: time.monotonic() > self._until, STEPS)
            self._check_schema(connection)
            self._set_journal(connection)
            self._check_size(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _raw(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, timeout=self._wait, isolation_level=None, check_same_thread=False)

    def _set_journal(self, connection: sqlite3.Connection) -> None:
        if self.path is None:
            return
        if self.building:
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            return
        wanted = "wal" if self.journal == "wal" else "truncate"
        found = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if found != wanted:
            try:
                found = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0]
            except sqlite3.OperationalError as error:
                # Others have the file open in the mode it has, or it is read-only; either mode can be read.
                if not re.search("locked|readonly|busy", str(error)):
                    raise
        if found == "wal" and not wal_is_safe():
            warnings.warn(
                f"{self.path} is in WAL mode and SQLite {sqlite3.sqlite_version} may damage such a file when two "
                "programs write at once; close the other programs that use it, or update SQLite to "
                f"{'.'.join(map(str, SAFE_WAL))}",
                RuntimeWarning,
                stacklevel=2,
            )
        # FULL flushes at every commit. EXTRA also flushes the folder's entry; a rollback journal that came back would
        # undo the last commit.
        connection.execute(f"PRAGMA synchronous = {'FULL' if found == 'wal' else 'EXTRA'}")

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        if self.path is None or self.building:
            return
        try:
            check_schema(connection)
        except ValueError as error:
            raise StoreDamaged(self._damage(str(error))) from error

    def _check_size(self, connection: sqlite3.Connection) -> None:
        """SQLite itself does not notice when the last page is cut in the middle."""
        if self.path is None or self.building:
            return
        connection.execute("BEGIN")
        pages, size, journal = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size", "journal_mode")
        )
        found = self.path.stat().st_size
        connection.execute("COMMIT")
        # In WAL mode pages may be in the log only.
        if journal != "wal" and found < pages * size:
            raise StoreDamaged(self._damage(f"it has {found} bytes of {pages * size}"))

    def _transaction(self, work: Work[T], *, writes: bool) -> T:
        # With a rollback journal readers and a writer keep each other out, so readers stand in the same line.
        waits = writes or self.journal == "rollback"
        in_line = self._line.mine(self._wait) if waits and self._line is not None else nullcontext()
        with (
            self._mine,
            in_line,
            self.engine.connect().execution_options(ally_writes=writes) as connection,
            self._move_mark() if writes else nullcontext(),
            self._start(connection),
        ):
            return work(connection)

    @contextmanager
    def _move_mark(self) -> Iterator[None]:
        """What is written meanwhile changes a file that was known into one that is known."""
        known = self._mark is not None and self._mark.fits()
        try:
            yield
        finally:
            if known and self._mark is not None:
                self._mark.write()

    def _start(self, connection: Connection) -> RootTransaction:
        """A journal may have come while the file was open, in a folder that is shared with another machine."""
        if self._file is not None:
            check_beside(self._file)
        return connection.begin()

    def _alone(self, name: str, seconds: float) -> AbstractContextManager[bool]:
        if self._file is None:
            return exclusive_by_lock(self._names.setdefault(name, threading.Lock()), seconds)
        return exclusive_by_file(self._file, name, seconds)

    def close(self) -> None:
        with self._move_mark():  # whoever closes a file last puts its log into it
            super().close()
        if self._line is not None:
            self._line.close()

    def failure(self, error: DBAPIError) -> StoreError:
        text = str(error.orig)
        if re.search("locked|busy", text):
            return StoreBusy(
                f"{self.name} was in use by others for {self.patience:g} seconds; close programs that hold it and try "
                "again"
            )
        if _DAMAGED.search(text):
            return StoreDamaged(self._damage(text))
        if "interrupted" in text:
            return StoreDamaged(self._damage("looking through it takes too long for its size"))
        if "is full" in text:
            return StoreFull(
                f"no room to write {self.name} ({text}); nothing was recorded: free some space and repeat the call"
            )
        if "readonly" in text:
            return StoreReadOnly(
                f"{self.name} cannot be written ({text}); change its permissions and those of its folder"
            )
        if "I/O error" in text:
            return StoreFull(
                f"{self.name} could not be read or written ({text}); nothing was recorded: check the disk, its free "
                "space and limits on file sizes, and repeat the call"
            )
        if "unable to open" in text:
            return StoreError(f"{self.name} cannot be opened ({text}); check its permissions and those of its folder")
        return StoreError(f"{self.name}: {text}")

    def _damage(self, text: str) -> str:
        backup = None if self.path is None else newest_backup(self.path)
        remedy = f"the newest backup beside it is {backup}" if backup else "there is no backup beside it"
        return (
            f"{self.name} is damaged or not a campaign ({text}); keep it as it is and run `ally doctor "
            f"{self.name}`; {remedy}"
        )

    def problems(self) -> list[str]:
        with self._bounded():
            return self.read(_find_damage) or self.read(find_odd_cells)

    def is_known(self, campaign: str) -> bool:
        mark = None if self._file is None else find_mark(campaign, self._file)
        if mark is not None and mark.fits():
            self._mark = mark
        return self._file is None or self._mark is not None

    def remember(self, campaign: str) -> None:
        self._mark = None if self._file is None else find_mark(campaign, self._file)
        if self._mark is not None:
            self._mark.write()

    def check_foreign(self, look: Work[list[str]] | None = None) -> None:
        with self._bounded():
            found = self.read(_find_damage)
            found = found or ([] if look is None else self.read(find_odd_cells) or self.read(look))
        if found:
            raise StoreDamaged(self._damage(found[0]))

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """For questions that read a whole file: their time grows with its size, and ends."""
        size = 0 if self._file is None else self._file.stat().st_size
        self._until = time.monotonic() + LEAST_SECONDS + size / BYTES_PER_SECOND
        try:
            yield
        finally:
            self._until = math.inf

    def prepare_upgrade(self, found: str) -> Path | None:
        return None if self.path is None else self.backup(next_backup(self.path))

    def backup(self, target: Path) -> Path:
        """A copy by SQLite's own backup, whole even while others write."""
        self._check_usable()
        with self._mine, self.failures():
            connection = self.engine.raw_connection()
            source = connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            try:
                return copy_file(source, target, 0o666 if self._file is None else self._file.stat().st_mode)
            except sqlite3.Error as error:
                raise self.failure(DBAPIError(None, None, error)) from error
            finally:
                connection.close()


def _find_damage(connection: Connection) -> list[str]:
    """Pages, indexes and references that do not hold together."""
    found = [str(line[0]) for line in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
    strays = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(20)
    return [line for line in found if line != "ok"] + [
        f"{line[0]} row {line[1]} points to nothing in {line[2]}" for line in strays
    ]


def _begin(connection: Connection) -> None:
    options: dict[str, Any] = dict(connection.get_execution_options())
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("ally_writes") else "BEGIN")


def copy_out(source: Database, target: Path) -> Path:
    """A campaign of a server as a SQLite file: the same tables, line by line, from one consistent state."""
    aside = building_name(target)
    copy = SQLite(aside, building=True)
    try:
        source.read(lambda origin: copy.write_once(lambda into: _fill(origin, into)))
        copy.close()
        put_in_place(aside, target)
    finally:
        copy.close()
        aside.unlink(missing_ok=True)
    return target


def _fill(origin: Connection, into: Connection) -> None:
    upgrade(into)
    # Tables that others point to come first.
    for table in metadata.sorted_tables:
        order = list(table.primary_key.columns)
        lines = origin.execution_options(yield_per=PIECE).execute(select(table).order_by(*order))
        for piece in pieces(lines.mappings(), PIECE):
            into.execute(insert(table), [dict(line) for line in piece])
