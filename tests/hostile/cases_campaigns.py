"""Campaign files of somebody else: their schema, cells, JSON, pages, and what lies beside them."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from case import HostileCase

from ally import Campaign

ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
STATUS, ASK, REVIEW = ("status", "{path}"), ("ask", "{path}", "--n", "2"), ("review", "{path}")
PREDICT, EXPORT = ("predict", "{path}"), ("export", "{path}", "labels.csv")
TELL, LABEL = ("tell", "{path}", "answers.csv"), ("label", "{path}", "--no-browser")
DOCTOR, TRUST, CLASSES = ("doctor", "{path}"), ("trust", "{path}", "--json"), ("classes", "{path}")
EVERY = (STATUS, ASK, PREDICT, TELL, REVIEW, EXPORT, DOCTOR, TRUST, CLASSES, LABEL)
SOME = (STATUS, DOCTOR, ASK, EXPORT)
_KEPT: dict[str, bytes] = {}


def make_campaign(folder: Path) -> Path:
    """A campaign with labels, a model and its ranking, a waiting query and a note; trained once for all cases."""
    rng = np.random.default_rng(0)
    rows = [f"s{n},{n % 2 + rng.normal(0, 0.3):.3f},{rng.normal():.3f}" for n in range(40)]
    (folder / "rows.csv").write_text("id,x,z\n" + "\n".join(rows) + "\n")
    (folder / "answers.csv").write_text("id,label\ns31,b\ns32,a\n")
    path = folder / "foreign.db"
    if "campaign" not in _KEPT:
        with Campaign.create(
            path, folder / "rows.csv", classes=["a", "b"], model="linear", evaluate=4, automatic=False
        ) as made:
            made.relabel({f"s{n}": "ab"[n % 2] for n in range(16)}, annotator="ann")
            made.undo(annotator="ann")
            made.retrain()
            made.ask(4, annotator="ann")
            made.page.note("s1", "blurred", annotator="ann")
        _KEPT["campaign"] = path.read_bytes()
    path.write_bytes(_KEPT["campaign"])
    for other in folder.glob("foreign.db-*"):
        other.unlink()
    return path


def run_sql(*lines: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = make_campaign(folder)
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA writable_schema = ON")
            for line in lines:
                connection.execute(line)
        connection.close()
        return path

    return make


def change_json(table: str, column: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], Path]:
    """Changes the JSON in the first row of a table."""

    def make(folder: Path) -> Path:
        path = make_campaign(folder)
        with sqlite3.connect(path) as connection:
            row, text = connection.execute(f"SELECT rowid, {column} FROM {table} ORDER BY rowid LIMIT 1").fetchone()
            kept = json.loads(text)
            changed = change(kept)
            new = changed if isinstance(changed, str) else json.dumps(kept)
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [new, row])
        connection.close()
        return path

    return make


def settings(**values: Any) -> Callable[[Path], Path]:
    return change_json("campaign", "settings", lambda kept: kept.update(values))


def fingerprint(**values: Any) -> Callable[[Path], Path]:
    return change_json("campaign", "settings", lambda kept: kept["fingerprint"].update(values))


def change_bytes(change: Callable[[bytearray], object]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = make_campaign(folder)
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)
        return path

    return make


def lay_beside(ending: str, plant: Callable[[Path, Path], object]) -> Callable[[Path], Path]:
    """Plants something under a name beside the file; what it aims at lies elsewhere."""

    def make(folder: Path) -> Path:
        path = make_campaign(folder)
        plant(path.with_name(path.name + ending), folder.parent / "elsewhere" / "secret.txt")
        return path

    return make


def name_super_journal(journal: Path, precious: Path) -> None:
    """A journal of nothing that names another file, which SQLite would delete."""
    name = str(precious).encode()
    end = struct.pack(">2I", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")
    page = struct.pack(">I", 2**30 // 4096 + 1)
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + struct.pack(">5I", 0, 1, 1, 512, 4096).ljust(504, b"\0"))
    with journal.open("ab") as file:
        file.write(page + name + end)


def swap_pages(data: bytearray) -> None:
    """The root of every table is a copy of the last page."""
    for place in range(4096, len(data) - 4096, 4096):
        data[place : place + 4096] = data[-4096:]


def loop_freelist(data: bytearray) -> None:
    """The first page of the freelist is the next of itself, with more leaves than fit."""
    page = len(data) // 4096
    data[32:40] = struct.pack(">2I", page, 2**31 - 1)
    data[-4096:-4088] = struct.pack(">2I", page, 1000)


def nest(kept: dict[str, Any]) -> str:
    return "[" * 100_000


REFUSED = "error: .* (is|are) damaged|WRONG"
SCHEMA = {
    "view that never ends": [f"CREATE VIEW extra AS {ENDLESS}"],
    "view in the place of the samples": ["DROP TABLE samples", f"CREATE VIEW samples AS {ENDLESS}"],
    "view in the place of the version": [
        "DROP TABLE alembic_version",
        f"CREATE VIEW alembic_version AS SELECT x AS version_num FROM ({ENDLESS})",
    ],
    "trigger that changes labels": [
        "CREATE TRIGGER extra AFTER INSERT ON answers BEGIN UPDATE answers SET value = '\"b\"'; END"
    ],
    "trigger that never ends": [f"CREATE TRIGGER extra BEFORE INSERT ON queries BEGIN {ENDLESS}; END"],
    "virtual table": ["CREATE VIRTUAL TABLE extra USING fts5 (a)"],
    "virtual table over files": [
        "INSERT INTO sqlite_master VALUES ('table', 'extra', 'extra', 0, "
        "'CREATE VIRTUAL TABLE extra USING csv(filename=''/etc/passwd'')')"
    ],
    "generated column": ["ALTER TABLE samples ADD COLUMN extra AS (abs(row))"],
    "column that computes a gigabyte": [
        "UPDATE sqlite_master SET sql = replace(sql, 'hash TEXT', 'hash TEXT DEFAULT (hex(zeroblob(900000000)))') "
        "WHERE name = 'samples'"
    ],
    "check that computes": [
        "UPDATE sqlite_master SET sql = replace(sql, 'hash TEXT', "
        "'hash TEXT CHECK (length(hex(zeroblob(900000000))) > 0)') WHERE name = 'samples'"
    ],
    "collation": [
        "UPDATE sqlite_master SET sql = replace(sql, 'id TEXT', 'id TEXT COLLATE evil') WHERE name = 'samples'"
    ],
    "index on an expression": ["CREATE INDEX extra ON samples (length(hash))"],
    "partial index": ["CREATE INDEX extra ON samples (hash) WHERE row > 3"],
    "statistics that mislead": ["ANALYZE", "UPDATE sqlite_stat1 SET stat = '1 1 1'"],
    "table on the page of another": [
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'events') "
        "WHERE name = 'models'"
    ],
    "table on page a thousand million": ["UPDATE sqlite_master SET rootpage = 1000000000 WHERE name = 'models'"],
    "name that is no text": ["UPDATE sqlite_master SET name = CAST(x'ae' AS TEXT), sql = 'evil' WHERE name = 'events'"],
    "two versions": ["INSERT INTO alembic_version VALUES ('0003')"],
    "version that is a path": ["UPDATE alembic_version SET version_num = '../../../tmp/evil'"],
    "version that is a module": ["UPDATE alembic_version SET version_num = 'os:system'"],
    "schema of an earlier version": ["UPDATE alembic_version SET version_num = '0002'"],
    "ten thousand tables": [f"CREATE TABLE extra{n} (a)" for n in range(1000)],
}
CELLS = {
    "text for a number": "UPDATE answers SET sample = 'nine' WHERE number = 3",
    "bytes for a text": "UPDATE samples SET id = x'fffe' WHERE row = 3",
    "text that is no Unicode": "UPDATE samples SET id = CAST(x'c328' AS TEXT) WHERE row = 3",
    "infinite time": "UPDATE answers SET at = 9e999",
    "time of the year 100000": "UPDATE answers SET at = 3e12",
    "negative row": "UPDATE ranking SET sample = -1 WHERE place = 0",
    "row that does not exist": "UPDATE ranking SET sample = 999 WHERE place = 0",
    "huge number": "UPDATE models SET seen = 9223372036854775807",
    "NUL in an annotator": "UPDATE answers SET annotator = 'a' || char(0) || 'b'",
    "long annotator": "UPDATE answers SET annotator = hex(zeroblob(10000000))",
    "text as weights": "UPDATE weights SET data = 'text'",
    "samples with gaps": "UPDATE samples SET row = 1000000000 WHERE row = 39",
    "undo of nothing": "UPDATE answers SET undoes = 1 WHERE kind = 'undo'",
    "undo of an undo": "UPDATE answers SET undoes = number WHERE kind = 'undo'",
    "label that is a list": "UPDATE answers SET value = '[1]' WHERE number = 2",
    "label that is infinite": "UPDATE answers SET value = '1e999' WHERE number = 2",
    "label of three million brackets": "UPDATE answers SET value = replace(hex(zeroblob(1500000)), '0', '[')",
    "no campaign in it": "DELETE FROM campaign",
    "two campaigns in it": "INSERT INTO campaign SELECT 2, created, seed, settings, id FROM campaign",
    "id that is a path": "UPDATE campaign SET id = '../../../../../../tmp/evil'",
    "id of another length": "UPDATE campaign SET id = 'abc'",
    "role that is none": "UPDATE samples SET role = 'king' WHERE row = 3",
    "report that is no object": "UPDATE models SET report = '[]'",
    "reason that is no object": "UPDATE asked SET why = '5'",
    "receipt of words": "UPDATE calls SET receipt = '[\"a\"]', key = 'k' WHERE number = 1",
    "event without its details": "UPDATE events SET detail = '{}' WHERE kind = 'note'",
}
VALUES: dict[str, Callable[[Path], Path]] = {
    "settings that are a list": change_json("campaign", "settings", lambda kept: "[]"),
    "settings of brackets": change_json("campaign", "settings", nest),
    "settings with an unknown entry": settings(own="os:system"),
    "place that is a number": settings(place=5),
    "place with a NUL": settings(place="rows\0.csv"),
    "classes with half a surrogate": settings(classes=["a", "b", "\ud83d"]),
    "classes that are numbers without end": settings(classes=[10**40, 1]),
    "half a million classes": settings(classes=[f"c{n}" for n in range(500_000)]),
    "batch of a million million": settings(batch=2**63),
    "batch that is a text": settings(batch="many"),
    "lease without end": settings(lease_seconds=1e300),
    "options that are a text": settings(options="text"),
    "option that is unknown": settings(options={"opener": "os:system"}),
    "option of another type": settings(options={"columns": 5}),
    "fingerprint without a layout": change_json("campaign", "settings", lambda kept: kept["fingerprint"].pop("layout")),
    "fingerprint of another kind": fingerprint(kind="plugin"),
    "fingerprint of a million million columns": fingerprint(shape=[2**40, 2**40]),
    "fingerprint with columns of numbers": fingerprint(layout={"columns": [1, 2]}),
}


def link(planted: Path, precious: Path) -> None:
    planted.symlink_to(precious)


BESIDE: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "journal that names another file": ("-journal", name_super_journal),
    "journal that is a link": ("-journal", link),
    "log that is a link": ("-wal", link),
    "log that is a pipe": ("-wal", lambda planted, _: os.mkfifo(planted)),
    "shared memory that is a link": ("-shm", link),
    "line of those who wait that is a link": ("-turn", link),
    "journal that is one file under two names": ("-journal", lambda planted, other: os.link(other, planted)),
}
GARBAGE: dict[str, Callable[[Path], Path]] = {
    "pages that are copies of one": change_bytes(swap_pages),
    "freelist that never ends": change_bytes(loop_freelist),
    "file cut in the middle": change_bytes(lambda data: data.__delitem__(slice(len(data) // 2, None))),
    "page size of one byte": change_bytes(lambda data: data.__setitem__(slice(16, 18), b"\0\x01")),
    "texts in UTF-16": change_bytes(lambda data: data.__setitem__(slice(56, 60), struct.pack(">I", 2))),
    "format of the future": change_bytes(lambda data: data.__setitem__(slice(18, 20), b"\x63\x63")),
}
EVERYWHERE = {
    "label that is a list", "label of three million brackets", "settings of brackets", "classes with half a surrogate",
    "fingerprint without a layout",
}  # fmt: skip
"""Values that every command meets."""
SHORT = {
    "view that never ends", "trigger that changes labels", "version that is a path", "bytes for a text",
    "label of three million brackets", "journal that names another file", "log that is a pipe",
    "ids that move the cursor",
}  # fmt: skip


def make_ids_that_move_the_cursor(folder: Path) -> Path:
    (folder / "rows.csv").write_text("id,x\n" + "".join(f'"s{n}\x1b[2J\u202e",{n}\n' for n in range(30)))
    (folder / "answers.csv").write_text("id,label\n")
    path = folder / "foreign.db"
    with Campaign.create(path, folder / "rows.csv", classes=["a\x1b[31m", "b"], automatic=False):
        return path


CASES = tuple(
    HostileCase(name, make, answer, commands, short=name in SHORT)
    for name, make, answer, commands in (
        *((name, run_sql(*lines), REFUSED, SOME) for name, lines in SCHEMA.items()),
        *((name, run_sql(line), REFUSED, SOME) for name, line in CELLS.items()),
        *((name, make, REFUSED, EVERY if name in EVERYWHERE else SOME) for name, make in VALUES.items()),
        *((name, lay_beside(*plant), r"error: .* (is|names|are) |WRONG", SOME) for name, plant in BESIDE.items()),
        *((name, make, r"error: .* (is damaged|holds no campaign)|WRONG", SOME) for name, make in GARBAGE.items()),
        ("encoding that is none", settings(options={"encoding": "os.system"}), ".", EVERY[:-1]),
        ("ids that move the cursor", make_ids_that_move_the_cursor, r"\A[^\x1b\u202e]*\Z", (STATUS, DOCTOR, CLASSES)),
    )
)
