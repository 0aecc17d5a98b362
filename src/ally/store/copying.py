"""A campaign of a server as a SQLite file: the same tables, line by line, from one consistent state."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, select

from ally.store.backups import building_name, put_in_place
from ally.store.database import Database
from ally.store.numbers import pieces
from ally.store.schema import metadata
from ally.store.sqlite import SQLite
from ally.store.versions import upgrade

PIECE = 2000


def copy_out(source: Database, target: Path) -> Path:
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
