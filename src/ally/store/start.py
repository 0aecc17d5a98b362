"""Creating and opening a campaign's store, by file name, URL or "memory"."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy import Connection, insert

from ally.checks import check_count
from ally.errors import InputError, StoreExists, StoreMissing
from ally.store import adding, samples
from ally.store.backups import building_name, put_in_place
from ally.store.base import Store
from ally.store.checking import find_faults
from ally.store.database import PATIENCE, Database
from ally.store.postgresql import PostgreSQL
from ally.store.schema import VERSION, campaign
from ally.store.sql import SQLStore
from ally.store.sqlite import Journal, SQLite
from ally.store.validation import check_annotator, check_now, write_json
from ally.store.values import NewSample, Role
from ally.store.versions import bring_up_to_date, find_version, upgrade, version_of

MEMORY = "memory"


def new_id() -> str:
    """An id for a campaign that is about to be created."""
    return secrets.token_hex(16)


def create(
    place: str | Path,
    settings: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    new: Iterable[NewSample],
    *,
    now: float,
    seed: int = 0,
    reserve: Mapping[Role, int] | Callable[[], Mapping[Role, int]] | None = None,
    labelled_by: str = "source",
    id: str | None = None,
    sqlite_journal: Journal = "auto",
    patience: float = PATIENCE,
) -> Store:
    """Makes a campaign, whole or not at all. `new` is streamed; `settings` and `reserve`, if they are functions, are
    called after that. `seed` fixes the random order, in which `reserve` moves so many samples to each role. Labels of
    samples become answers of `labelled_by`. `id` is one of `new_id`."""
    check_now(now)
    check_annotator(labelled_by)
    check_count("seed", seed, 0)
    if not callable(reserve):
        samples.check_reserves(reserve or {})
    made = id or new_id()
    known = None if callable(settings) else write_json("settings", dict(settings))
    if seed >= 2**63:
        raise InputError.about("seed", seed, "is too large; take one below 2**63")

    def work(connection: Connection) -> None:
        upgrade(connection)
        adding.fill(connection, new, seed, now, labelled_by)
        text = write_json("settings", dict(settings())) if callable(settings) else known
        line = {"number": 1, "created": now, "seed": seed, "settings": text, "id": made}
        connection.execute(insert(campaign), line)
        samples.reserve_of_all(connection, reserve() if callable(reserve) else reserve or {})

    where = _place(place)
    if isinstance(where, Path):
        # Built under another name and renamed once it is on disk, so that nobody sees half a campaign and a crash
        # leaves the name free.
        aside = building_name(where)
        building = SQLite(aside, building=True)
        try:
            building.write_once(work)
            building.close()
            put_in_place(aside, where)
        finally:
            building.close()
            aside.unlink(missing_ok=True)
        return _open(SQLite(where, journal=sqlite_journal, patience=patience), lambda database, store: None)
    database: Database = SQLite(None) if where == MEMORY else PostgreSQL(where, patience=patience)

    def work_if_empty(connection: Connection) -> None:
        if version_of(connection) is not None:
            raise StoreExists(f"{database.name} holds a campaign already; name another database or schema")
        work(connection)

    try:
        database.write_once(work_if_empty)
    except BaseException:
        database.close()
        raise
    return SQLStore(database)


def open(
    place: str | Path,
    *,
    sqlite_journal: Journal = "auto",
    patience: float = PATIENCE,
    check_foreign: Callable[[Store], object] = lambda store: None,
) -> Store:
    """Opens a campaign. One of an older version is upgraded, a file after a backup beside it; one of a newer version is
    refused. A file that this user has not had open is looked through first, then `check_foreign` may refuse it."""
    where = _place(place)
    if where == MEMORY:
        raise StoreMissing("a store in memory ends with its program and cannot be opened again; use a file")
    database: Database = (
        SQLite(where, journal=sqlite_journal, patience=patience)
        if isinstance(where, Path)
        else PostgreSQL(where, patience=patience)
    )

    def look_through(database: Database, store: Store) -> None:
        database.check_foreign(find_faults)
        check_foreign(store)

    return _open(database, look_through)


def _open(database: Database, look_through: Callable[[Database, Store], None]) -> Store:
    """`look_through` is for a campaign that is not known, or is no longer as it was left."""
    try:
        database.check_tables()
        version, store = find_version(database), SQLStore(database)
        if version != VERSION:
            database.check_foreign()
            bring_up_to_date(database, version)
        if not database.is_known(store.id):
            look_through(database, store)
            database.remember(store.id)
        return store
    except BaseException:
        database.close()
        raise


def _place(place: str | Path) -> Path | str:
    """A path for SQLite; otherwise "memory" or a PostgreSQL URL."""
    if isinstance(place, Path):
        return place.absolute()
    if not isinstance(place, str) or not place or "\x00" in place:
        raise InputError(f"{place!r} is not a store; pass a file name such as 'pets.db', or postgresql://…")
    if place in (MEMORY, ":memory:"):
        return MEMORY
    scheme, found, rest = place.partition("://")
    if not found:
        return Path(place).absolute()
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return Path(unquote(rest[1:])).absolute()
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return "postgresql://" + rest
    raise InputError(
        f"{place!r} is not a store; pass a file name such as 'pets.db', sqlite:///pets.db, or "
        "postgresql://user@host/database"
    )
