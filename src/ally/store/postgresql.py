"""PostgreSQL by URL; needs psycopg (the extra ``postgresql``)."""

from __future__ import annotations

import importlib.util
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from ally.errors import (
    InputError,
    MissingPart,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)
from ally.store.database import PATIENCE, Database, T, Work
from ally.store.locks import forget, remember, within
from ally.store.server_tables import find_foreign_part

# Functions by their whole names and types: one of the same name in the campaign's own schema is somebody else's.
_WRITERS = text(
    "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('ally campaign in ' || current_schema(), 0))"
)

# Another text than that of the writers, and so another lock.
_NAME = "pg_catalog.hashtextextended('ally alone in ' || current_schema() || ': ' || :name, 0)"
_TAKE = text(f"SELECT pg_catalog.pg_try_advisory_lock({_NAME})")
_LEAVE = text(f"SELECT pg_catalog.pg_advisory_unlock({_NAME})")
# The session may be silent for hours. The server notices within a minute that the machine of its holder is gone.
_STAYS = text("""SELECT pg_catalog.set_config(name, value, false) FROM pg_catalog.pg_settings
    JOIN (VALUES
    ('idle_session_timeout', '0'), ('tcp_keepalives_idle', '30'), ('tcp_keepalives_interval', '10'),
    ('tcp_keepalives_count', '3')) AS t (known, value) ON known = name""")

_BUSY = {"55P03", "40P01", "40001"}
_FULL = {"53100", "53000", "53200"}
_READ_ONLY = {"25006", "42501"}
_DAMAGED = {"XX001", "XX002", "42P01", "42703"}


class PostgreSQL(Database):
    """One campaign per schema; the connection's search path says which (``?options=-csearch_path%3Dpets``)."""

    def __init__(self, url: str, *, patience: float = PATIENCE) -> None:
        if importlib.util.find_spec("psycopg") is None:
            raise MissingPart("PostgreSQL needs psycopg, which is not installed: pip install 'ally-learn[postgresql]'")
        try:
            place = make_url(url).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError) as error:
            shown = re.sub(r"(//[^:@/]*):.*@", r"\1:***@", url)
            raise InputError(
                f"{shown!r} is not a database URL; write postgresql://user:password@host:5432/database"
            ) from error
        self._wait = min(5.0, patience)
        engine = create_engine(
            place, pool_size=5, max_overflow=20, pool_pre_ping=True, connect_args={"connect_timeout": 10}
        )
        event.listen(engine, "connect", self._set_up)
        super().__init__(place.set(drivername="postgresql").render_as_string(hide_password=True), engine, patience)

    def _set_up(self, connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            # A commit is acknowledged when it is on disk, whatever the server's default is.
            cursor.execute(
                "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = "
                "'off'"
            )
            # Waiting for the writers' turn ends, and a client that was stopped in its turn loses it.
            cursor.execute(f"SET lock_timeout = '{int(1000 * self._wait)}ms'")
            cursor.execute("SET idle_in_transaction_session_timeout = '60s'")
            fsync = cursor.execute("SHOW fsync").fetchone()[0]
        connection.commit()
        if fsync == "off":
            warnings.warn(
                "the PostgreSQL server runs with fsync = off: a power cut can lose labels; switch it on",
                RuntimeWarning,
                stacklevel=2,
            )

    def _transaction(self, work: Work[T], *, writes: bool) -> T:
        level = "READ COMMITTED" if writes else "REPEATABLE READ"
        with self.engine.connect().execution_options(isolation_level=level) as connection, connection.begin():
            if writes:
                connection.execute(_WRITERS)
            return work(connection)

    def write_once(self, work: Work[T]) -> T:
        def unhurried(connection: Connection) -> T:
            # What it consumes may be a slow disk; nobody is kept waiting but others who create the same campaign.
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            return work(connection)

        return super().write_once(unhurried)

    @contextmanager
    def _alone(self, name: str, seconds: float) -> Iterator[bool]:
        with self.failures():
            # Not one of the pool's: the lock belongs to the session and must end with it.
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            file = connection.connection.fileno()
            connection.detach()
        process, mine = os.getpid(), False
        try:
            with self.failures():
                connection.execute(_STAYS)
                mine = within(seconds, lambda: bool(connection.execute(_TAKE, {"name": name}).scalar_one()))
            if mine:
                remember(file)
            yield mine
        finally:
            if os.getpid() == process:
                forget(file)
                # A connection that is lost has ended the lock; what was done under it is done.
                with suppress(DBAPIError):
                    if mine:
                        connection.execute(_LEAVE, {"name": name})
                connection.close()

    def failure(self, error: DBAPIError) -> StoreError:
        code = getattr(error.orig, "sqlstate", None)
        said = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
        if code in _BUSY:
            return StoreBusy(f"{self.name} was in use by others for {self.patience:g} seconds ({said}); try again")
        if code in _FULL:
            return StoreFull(
                f"no room to write {self.name} ({said}); nothing was recorded: free some space and repeat the call"
            )
        if code in _READ_ONLY:
            return StoreReadOnly(
                f"{self.name} cannot be written ({said}); use a role that may write, on the primary server"
            )
        if code in _DAMAGED:
            return StoreDamaged(
                f"{self.name} is damaged or not a campaign ({said}); run `ally doctor`, and restore the server's backup"
            )
        if error.connection_invalidated or code is None or code[:2] in ("08", "57", "28", "3D"):
            return StoreUnreachable(
                f"{self.name} does not answer ({said}); check the URL and the server. A call under way may or may not "
                "be recorded: repeat it with the same key"
            )
        return StoreError(f"{self.name}: {said}")

    def check_tables(self) -> None:
        found = self.read(find_foreign_part)
        if found is not None:
            raise StoreDamaged(
                f"{self.name} is not used: {found}, which ally never makes and which would run with your rights; look "
                "at it, and remove it"
            )

    def problems(self) -> list[str]:
        """The server watches its own files; see pg_amcheck."""
        return []

    def prepare_upgrade(self, found: str) -> Path | None:
        """The schema changes in one transaction, whole or not at all; copies are the server's own business
        (pg_dump)."""
        return None
