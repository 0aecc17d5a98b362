"""What is special about a server."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest
from sqlalchemy import Connection

from ally import store as stores
from ally.errors import (
    InputError,
    MissingPart,
    PoolExhausted,
    StoreBusy,
    StoreDamaged,
    StoreExists,
    StoreMissing,
    StoreUnreachable,
)
from ally.store import NewAnswer, NewSample
from ally.store.postgresql import PostgreSQL


def make(url: str, **more: object) -> stores.Store:
    return stores.create(url, {}, [NewSample(f"s{row}") for row in range(10)], now=0.0, **more)  # type: ignore[arg-type]


def test_places_with_and_without_a_campaign(new_database: Callable[[], str]) -> None:
    url = new_database()
    with pytest.raises(StoreMissing, match="holds no campaign"):
        stores.open(url)
    with pytest.raises(PoolExhausted):
        make(url, reserve={"evaluate": 11})
    make(url).close()
    with pytest.raises(StoreExists, match="holds a campaign already"):
        make(url)
    with stores.open(url.replace("postgresql://", "postgres://")) as store:
        assert len(list(store.samples.all())) == 10


def test_commits_are_flushed_whatever_the_servers_default(new_database: Callable[[], str]) -> None:
    url = new_database() + "%20-csynchronous_commit%3Doff"
    make(url).close()
    database = PostgreSQL(url)
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    database.close()


def test_a_slow_source_does_not_end_the_creation(new_database: Callable[[], str]) -> None:
    database = PostgreSQL(new_database())

    def work(connection: Connection) -> str:
        return str(connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar())

    assert (database.write_once(work), database.write(work)) == ("0", "1min")
    database.close()


def test_a_busy_store_waits_and_then_reports(new_database: Callable[[], str]) -> None:
    url = new_database()
    store, other = make(url, patience=0.3), PostgreSQL(url)
    with other.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql(
            "SELECT pg_advisory_xact_lock(hashtextextended('ally campaign in ' || current_schema(), 0))"
        )
        with pytest.raises(StoreBusy, match="in use by others"):
            store.log(1.0, "x")
    assert store.log(1.0, "x") == 1
    store.close()
    other.close()


def test_campaigns_in_two_schemas_do_not_meet(new_database: Callable[[], str]) -> None:
    first, second = make(new_database()), make(new_database())
    first.answer("ann", 1.0, [NewAnswer("s1", "cat")])
    assert (len(first.answers.labels()), len(second.answers.labels())) == (1, 0)
    first.close()
    second.close()


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(StoreUnreachable, match="does not answer") as error:
        stores.open("postgresql://me:secret@127.0.0.1:1/pets", patience=0.1)
    assert "secret" not in str(error.value)


def test_bad_urls_and_missing_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="not a database URL"):
        stores.open("postgresql://host:port/x")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPart, match=r"ally-learn\[postgresql\]"):
        stores.open("postgresql://host/x")


PLANTED = {
    "'samples' is no plain table": (
        "ALTER TABLE samples RENAME TO kept; CREATE VIEW samples AS SELECT * FROM kept WHERE run() IS NULL"
    ),
    "'alembic_version' is no plain table": (
        "ALTER TABLE alembic_version RENAME TO kept; CREATE VIEW alembic_version AS SELECT run() AS version_num"
    ),
    "'answers' has a trigger": (
        "CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM run(); RETURN NEW; END$$; "
        "CREATE TRIGGER extra BEFORE INSERT ON answers FOR EACH ROW EXECUTE FUNCTION fire()"
    ),
    "'answers' has a rule": "CREATE RULE extra AS ON INSERT TO answers DO ALSO SELECT run()",
    "'samples' has a policy": (
        "ALTER TABLE samples ENABLE ROW LEVEL SECURITY; CREATE POLICY extra ON samples USING (run() IS NULL)"
    ),
    "'campaign' has a computed value": "ALTER TABLE campaign ADD COLUMN extra text DEFAULT run()",
    "'campaign' has a check": "ALTER TABLE campaign ADD CHECK (run() IS NOT NULL)",
    "'calls' has an index that computes": "CREATE INDEX extra ON calls (number) WHERE number > 3",
    "'events' has a part elsewhere": "CREATE TABLE extra () INHERITS (events)",
    "'models' has a column of a foreign type": (
        "CREATE DOMAIN extra AS text CHECK (run() IS NOT NULL); ALTER TABLE models ADD COLUMN extra extra"
    ),
}


@pytest.mark.parametrize(("words", "planted"), PLANTED.items(), ids=PLANTED)
def test_what_would_run_on_the_server_is_refused(new_database: Callable[[], str], words: str, planted: str) -> None:
    url = new_database()
    make(url).close()
    database = PostgreSQL(url)
    with database.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("CREATE TABLE ran (at text)")
        connection.exec_driver_sql(
            "CREATE FUNCTION run() RETURNS text LANGUAGE sql AS $$INSERT INTO ran VALUES ('now') RETURNING '0004'$$"
        )
        connection.exec_driver_sql(planted)
        connection.exec_driver_sql("DELETE FROM ran")
    with pytest.raises(StoreDamaged, match=f"the table {words}, which ally never makes and which would run"):
        stores.open(url)
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM ran").scalar() == 0
    database.close()
