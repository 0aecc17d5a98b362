"""Changes of a file that somebody hostile, or a bad disk, might make: of its bytes, its rows, its JSON, its tensors."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Change: TypeAlias = Callable[[bytes, random.Random], bytes]

SCALARS: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**40, 0.5, 1e308, float("nan"), float("inf"),
    "", "a", "x" * 10_000, "\x00", "\x1b[2J", "\ud800", "‮abc", "../../etc/passwd", "/etc/passwd", "os:system",
    "os.system", "ray://127.0.0.1:1", "http://127.0.0.1:1/", "file:///etc/passwd", "1e999", "[" * 5000, "{}", [], {},
    [[]], {"": None}, ["a"] * 1000, {"a": {"a": {"a": {}}}},
)  # fmt: skip
CELLS: tuple[Any, ...] = (
    None, -1, 0, 2**31, 2**63 - 1, -(2**63), 0.5, float("inf"), "", "a", "\x1b[2J", "x" * 100_000, b"\xff\xfe", b"",
    "null", "[]", "{}", "[[" * 3000, '{"a": NaN}', "not json", '{"version": 10000000000000000000000}', "os:system",
)  # fmt: skip
SCHEMA = (
    "CREATE VIEW extra AS SELECT 1",
    "CREATE TRIGGER extra AFTER INSERT ON answers BEGIN DELETE FROM samples; END",
    "CREATE VIRTUAL TABLE extra USING fts5(a)",
    "CREATE INDEX extra ON samples (id)",
    "CREATE TABLE extra (a)",
    "ALTER TABLE {table} ADD COLUMN extra",
    "ALTER TABLE {table} RENAME TO {table}_before",
    "DROP TABLE {table}",
    "PRAGMA user_version = 77",
    "PRAGMA encoding = 'UTF-16'",
    "PRAGMA auto_vacuum = FULL",
    "DELETE FROM {table}",
    "INSERT OR IGNORE INTO {table} SELECT * FROM {table}",
)


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes, a block, or the end."""
    made = bytearray(data)
    kind = rng.randrange(4)
    if kind == 0:
        for _ in range(rng.choice((1, 3, 20))):
            made[rng.randrange(len(made))] = rng.randrange(256)
    elif kind == 1:  # heads decide most
        made[rng.randrange(min(len(made), 200))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
    elif kind == 2:
        start, size = rng.randrange(len(made)), rng.choice((1, 8, 512, 4096))
        other = rng.randrange(len(made))
        made[start : start + size] = made[other : other + size]
    else:
        del made[rng.randrange(len(made)) :]
    return bytes(made)


def change_value(value: Any, rng: random.Random) -> Any:
    """A JSON value with one place in it changed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        kind = rng.random()
        if kind < 0.1:
            return {name: one for name, one in value.items() if name != key}
        if kind < 0.15:
            return {**value, rng.choice(("extra", "own", "learners", "\ud800", "")): rng.choice(SCALARS)}
        return {**value, key: change_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [*value[:place], change_value(value[place], rng), *value[place + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return value + rng.choice((-1, 1, 2**20, -(2**20), 2**40))
    return rng.choice(SCALARS)


def change_database(data: bytes, rng: random.Random) -> bytes:
    """A cell, the JSON in a cell, a row, or the schema of a SQLite file."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data)
        connection.execute("PRAGMA foreign_keys = OFF")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        table = rng.choice([name for name in tables if not name.startswith("sqlite_")])
        with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
            if rng.random() < 0.2:
                connection.execute(rng.choice(SCHEMA).format(table=table))
            else:
                _change_cell(connection, table, rng)
        connection.commit()
        return connection.serialize()
    finally:
        connection.close()


def _change_cell(connection: sqlite3.Connection, table: str, rng: random.Random) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    rows = [row for (row,) in connection.execute(f"SELECT rowid FROM {table}")]
    if not rows:
        connection.execute(
            f"INSERT INTO {table} VALUES ({','.join('?' * len(columns))})", rng.choices(CELLS, k=len(columns))
        )
        return
    column, row = rng.choice(columns), rng.choice(rows)
    (cell,) = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", [row]).fetchone()
    new = rng.choice(CELLS)
    if isinstance(cell, str) and cell[:1] in "[{" and rng.random() < 0.9:
        new = json.dumps(change_value(json.loads(cell), rng))
    elif isinstance(cell, bytes) and len(cell) > 100 and rng.random() < 0.9:
        new = change_model(cell, rng)
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [new, row])


def change_model(data: bytes, rng: random.Random) -> bytes:
    """The header of a safetensors file, the facts in it, its numbers, or the estimator in it."""
    size = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + size])
        facts = json.loads(header["__metadata__"]["ally"])
        archives = [name for name, one in header.items() if name != "__metadata__" and one["dtype"] == "U8"]
    except (ValueError, KeyError, TypeError):  # an earlier change was here
        return change_bytes(data, rng)
    body, kind = data[8 + size :], rng.random()
    if kind < 0.5:
        facts = change_value(facts, rng)
    elif kind < 0.6:
        changed = change_value({name: one for name, one in header.items() if name != "__metadata__"}, rng)
        header = {**header, **changed} if isinstance(changed, dict) else {"tensors": changed}
    elif kind < 0.8 and archives:
        name = rng.choice(archives)
        first, end = header[name]["data_offsets"]
        made = change_archive(body[first:end], rng)
        grown = len(made) - (end - first)
        body = body[:first] + made + body[end:]
        for other, one in header.items():
            if other != "__metadata__":
                one["data_offsets"] = [at + grown if at >= end else at for at in one["data_offsets"]]
        header[name] |= {"shape": [len(made)], "data_offsets": [first, first + len(made)]}
    elif len(body) > 8:
        made_body = bytearray(body)
        place = rng.randrange(0, len(body) - 7, 4)
        number = rng.choice((float("nan"), float("inf"), 1e300, -1.0, 0.0))
        made_body[place : place + 8] = (
            struct.pack("<d", number) if rng.random() < 0.5 else struct.pack("<q", rng.choice((-1, 2**62, 7)))
        )
        body = bytes(made_body)
    header["__metadata__"] = {"ally": json.dumps(facts)}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def change_archive(data: bytes, rng: random.Random) -> bytes:
    """The plan of an estimator in a zip archive, or the numbers in it."""
    made = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        return change_bytes(data, rng)
    name = "schema.json" if "schema.json" in members and rng.random() < 0.6 else rng.choice(list(members))
    if name == "schema.json":
        members[name] = json.dumps(change_value(json.loads(members[name]), rng)).encode("utf-8", "surrogatepass")
    else:
        members[name] = change_bytes(members[name], rng)
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return made.getvalue()


def write_changed(source: Path, target: Path, change: Change, rng: random.Random) -> None:
    """One to three changes of a file, written as another."""
    data = source.read_bytes()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            data = change(data, rng) or data
        except Exception:  # what it takes apart was broken by an earlier change
            data = change_bytes(data, rng)
    target.write_bytes(data)
