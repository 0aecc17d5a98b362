"""What is special about a server."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest
from sqlalchemy import Connection

from ally import store as stores
from ally.errors import InputError, MissingPart, PoolExhausted, StoreBusy, StoreExists, StoreMissing, StoreUnreachable
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
