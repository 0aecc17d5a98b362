"""A campaign's file has the tables that our migrations make, and nothing else: looked at before anything is read."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from ally import store as stores
from ally.errors import StoreDamaged, StoreMissing
from ally.store import NewSample
from ally.store.file_schema import DIGESTS, build_parts, digest_parts
from ally.store.schema import VERSION
from ally.store.sqlite import SQLite
from ally.store.versions import upgrade

ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
STRANGE = {
    "the view 'extra'": f"CREATE VIEW extra AS {ENDLESS}",
    "the trigger 'extra'": "CREATE TRIGGER extra AFTER INSERT ON answers BEGIN DELETE FROM samples; END",
    "the table 'extra', which ally never makes": "CREATE TABLE extra (a)",
    "it has the table 'extra'": "CREATE VIRTUAL TABLE extra USING fts5 (a)",
    "the index 'extra'": "CREATE INDEX extra ON samples (hash)",
    "the table 'sqlite_stat1'": "ANALYZE",
    "the table 'samples' is not as ally makes it": "ALTER TABLE samples ADD COLUMN extra",
    "the table 'answers' is not as ally makes it": "ALTER TABLE answers ADD COLUMN x AS (abs(number))",
    "the table 'models' is not as ally makes it": "ALTER TABLE models ADD COLUMN x DEFAULT (random())",
    "the table 'events' is missing": "DROP TABLE events",
    "the index 'ix_answers_sample' is missing": "DROP INDEX ix_answers_sample",
    "its table alembic_version is not": "ALTER TABLE alembic_version ADD COLUMN x",
    "its version is ": "INSERT INTO alembic_version VALUES ('0003')",
    "its version is []": "DELETE FROM alembic_version",
    "its version is ['../../0001']": "UPDATE alembic_version SET version_num = '../../0001'",
    "its version is ['os:system']": "UPDATE alembic_version SET version_num = 'os:system'",
    "there is no such version": "UPDATE alembic_version SET version_num = '0000'",
    "the table 'leases' is not as ally makes it": """UPDATE sqlite_master SET
        sql = replace(sql, 'annotator TEXT', 'annotator TEXT COLLATE NOCASE') WHERE name = 'leases'""",
    "the table 'calls' is not as ally makes it": """UPDATE sqlite_master SET
        sql = replace(sql, 'CONSTRAINT pk_calls', 'CHECK (length(hex(zeroblob(1000000000)))), CONSTRAINT pk_calls')
        WHERE name = 'calls'""",
    "the index 'ix_leases_query' is not as ally makes it": """UPDATE sqlite_master SET
        sql = sql || ' WHERE until > 0' WHERE name = 'ix_leases_query'""",
    "malformed database schema": """UPDATE sqlite_master SET
        sql = sql || ' WHERE randomblob(1000000000) IS NOT NULL' WHERE name = 'ix_leases_query'""",
    "two of its tables lie on the same page": """UPDATE sqlite_master SET
        rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'events') WHERE name = 'models'""",
}


def make(path: Path) -> Path:
    stores.create(path, {}, [NewSample("a"), NewSample("b")], now=0.0).close()
    return path


def change(path: Path, *lines: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for line in lines:
            connection.execute(line)
    connection.close()


@pytest.mark.parametrize(("words", "line"), STRANGE.items(), ids=STRANGE)
def test_a_file_with_another_schema_is_refused_by_name(tmp_path: Path, words: str, line: str) -> None:
    path = make(tmp_path / "a.db")
    change(path, line)
    began = time.monotonic()
    with pytest.raises(StoreDamaged) as error:
        stores.open(path)
    assert words in str(error.value)
    assert "ally doctor" in str(error.value)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("name", ["alembic_version", "Alembic_Version"])
def test_an_endless_view_in_the_place_of_the_version_is_not_read(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / "a.db")
    change(path, "DROP TABLE alembic_version", f"CREATE VIEW {name} AS SELECT x AS version_num FROM ({ENDLESS})")
    with pytest.raises(StoreDamaged, match="its table alembic_version is not the one that ally makes"):
        stores.open(path)


def test_a_file_of_endless_views_alone_is_no_campaign(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    change(path, f"CREATE VIEW samples AS {ENDLESS}")
    with pytest.raises(StoreMissing, match="holds no campaign"):
        stores.open(path)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    change(path, "PRAGMA encoding = 'UTF-16le'", "CREATE TABLE alembic_version (version_num)")
    with pytest.raises(StoreDamaged, match="its texts are in UTF-16le"):
        stores.open(path)


@pytest.mark.parametrize("first", sorted(DIGESTS))
def test_a_file_of_every_version_opens_and_then_has_the_same_tables(tmp_path: Path, first: str) -> None:
    """Made at one version and upgraded step by step, as those who update now and then have it."""
    path = tmp_path / "a.db"
    engine = create_engine(f"sqlite:///{path}")
    for revision in [revision for revision in sorted(DIGESTS) if revision >= first]:
        with engine.begin() as connection:
            upgrade(connection, revision)
        with sqlite3.connect(path) as file:
            assert file.execute("SELECT version_num FROM alembic_version").fetchone() == (revision,)
        file.close()
        database = SQLite(path)
        assert database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar()) == 1
        database.close()
    engine.dispose()


def test_the_known_versions_are_those_of_the_migrations() -> None:
    assert {revision: digest_parts(build_parts(revision)) for revision in DIGESTS} == DIGESTS
    assert max(DIGESTS) == VERSION


def test_words_that_another_library_writes_otherwise_pass(tmp_path: Path) -> None:
    """Blanks and quotes; here the slow comparison is needed."""
    path = make(tmp_path / "a.db")
    change(
        path,
        "UPDATE sqlite_master SET sql = replace(sql, 'annotator TEXT', '\"annotator\"   TEXT') WHERE name = 'leases'",
    )
    stores.open(path).close()


@pytest.mark.parametrize(
    "line",
    [
        "ATTACH 'other.db' AS other",
        "CREATE TEMP VIEW extra AS SELECT 1",
        "CREATE TEMP TRIGGER extra AFTER INSERT ON answers BEGIN DELETE FROM samples; END",
        "CREATE VIRTUAL TABLE temp.extra USING fts5 (a)",
        "PRAGMA writable_schema = ON",
        "PRAGMA trusted_schema = ON",
        "SELECT load_extension('evil.so')",
    ],
)
def test_no_statement_on_a_campaign_reaches_outside(tmp_path: Path, line: str) -> None:
    database = SQLite(make(tmp_path / "a.db"))
    with pytest.raises(StoreDamaged, match=r"not authorized|prohibited|too many attached"):
        database.read(lambda connection: connection.exec_driver_sql(line).all())
    database.close()
    assert not (tmp_path / "other.db").exists()


def test_a_trigger_that_comes_while_the_campaign_is_open_does_not_run(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    with stores.open(path) as store:
        change(path, "CREATE TRIGGER extra AFTER INSERT ON answers BEGIN DELETE FROM samples; END")
        with pytest.raises(StoreDamaged, match=r"prohibited|not authorized"):
            store.answer("ann", 1.0, [stores.NewAnswer("a", "cat")])
        assert store.samples.size() == 2
