"""The tables that a campaign's file must have: those that our migrations make, and nothing else.

A SQLite file carries its schema as text, and parts of a schema run when the file is read or written: a view or a
generated column computes without end, a trigger changes labels, a virtual table calls a module. So the texts are
compared with ours before anything else is read.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from functools import cache
from typing import NamedTuple

from sqlalchemy import create_engine, text

from ally.store.schema import VERSION
from ally.store.versions import REVISION, upgrade

DIGESTS = {
    "0001": "7ef58102845a9e9704f8ec69f5aca95f5755e79a0d335e0d7a5dd62d8943a48e",
    "0002": "986a87c64fd945b2c2e8b49eb7e2b370e1022e9daf73863c149a849e2025b82b",
    "0003": "9b24039bca44d43d7e201b1ef1a0829b57ced21c2d0bbfdca4c6983080a3f7a8",
    "0004": "3ea016a06fd53a42463816adefbd9c4ea1b038fd1a82bd51ce101e8ae12fe75d",
}
"""Of the tables at each revision: Alembic, which is slow to import, is needed only where none of them fits."""
MOST_PARTS = 200
SHOWN = 80
_PARTS = f"SELECT type, name, tbl_name, sql, rootpage FROM sqlite_master LIMIT {MOST_PARTS}"
_WORDS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|\S")
_QUOTED_NAME = re.compile(r'"([a-z_0-9]+)"')
_VERSION_TABLE = "alembic_version"
_VERSION_WORDS = (
    "CREATE TABLE alembic_version ( version_num VARCHAR ( 32 ) NOT NULL , "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY ( version_num ) )"
)


class SchemaPart(NamedTuple):
    """A table, index, view or trigger. `words` are those of its text: blanks and needless quotes differ between
    versions of the library that writes it."""

    kind: str
    name: str
    table: str
    words: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r:.{SHOWN}}"


def check_schema(connection: sqlite3.Connection) -> None:
    """Raises `ValueError`, with what was found, unless the file has the tables of the revision it says it is at. A file
    without a campaign, or from a newer version, passes: nothing else is read from it."""
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    if encoding != "UTF-8":
        raise ValueError(f"its texts are in {encoding}, and ally writes UTF-8")
    parts = _read_parts(connection)
    if not any(part.name.lower() == _VERSION_TABLE for part in parts):
        return
    fits = next((revision for revision, digest in DIGESTS.items() if digest == digest_parts(parts)), None)
    if fits is None and ("table", _VERSION_TABLE, _VERSION_TABLE, _VERSION_WORDS) not in parts:
        raise ValueError(f"its table {_VERSION_TABLE} is not the one that ally makes")
    revision = _read_revision(connection)
    if revision == fits or revision > VERSION:
        return
    if revision not in DIGESTS:
        raise ValueError(f"it says that its version is {revision}, and there is no such version")
    _compare(parts, build_parts(revision))


def digest_parts(parts: list[SchemaPart]) -> str:
    return hashlib.sha256(repr([tuple(part) for part in parts]).encode("utf-8", "surrogatepass")).hexdigest()


@cache
def build_parts(revision: str) -> list[SchemaPart]:
    """What our migrations make, up to this revision."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        upgrade(connection, revision)
        parts = [_take_apart(*line[:4]) for line in connection.execute(text(_PARTS))]
    engine.dispose()
    return sorted(parts)


def _read_parts(connection: sqlite3.Connection) -> list[SchemaPart]:
    lines = connection.execute(_PARTS).fetchall()
    pages = [line[4] for line in lines if line[0] in ("table", "index") and line[4]]
    if len(set(pages)) != len(pages):
        raise ValueError("two of its tables lie on the same page")
    return sorted(_take_apart(*line[:4]) for line in lines)


def _take_apart(kind: object, name: object, table: object, sql: object) -> SchemaPart:
    words = _WORDS.findall("" if sql is None else str(sql))
    return SchemaPart(str(kind), str(name), str(table), " ".join(_QUOTED_NAME.sub(r"\1", word) for word in words))


def _read_revision(connection: sqlite3.Connection) -> str:
    lines = [line[0] for line in connection.execute(f"SELECT version_num FROM {_VERSION_TABLE} LIMIT 2")]
    if len(lines) != 1 or not isinstance(lines[0], str) or not REVISION.fullmatch(lines[0]):
        raise ValueError(f"its version is {lines!r:.{SHOWN}}, not one of four digits")
    return lines[0]


def _compare(parts: list[SchemaPart], expected: list[SchemaPart]) -> None:
    names = {(part.kind, part.name) for part in expected}
    for part in parts:
        if (part.kind, part.name) not in names:
            raise ValueError(f"it has {part}, which ally never makes")
    missing = next((part for part in expected if part not in parts), None)
    if missing is not None:
        there = (missing.kind, missing.name) in {(part.kind, part.name) for part in parts}
        raise ValueError(f"{missing} is {'not as ally makes it' if there else 'missing'}")
    if parts != expected:
        raise ValueError("it has a table twice")
