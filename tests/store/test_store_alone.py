"""`exclusive` ends with its holder, however that one ends, and whoever else has copies of its files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from ally import store as stores
from ally.errors import StoreReadOnly
from ally.store import NewSample
from ally.store.postgresql import PostgreSQL
from store_clients import kill, start
from store_server import Server

NOBODY = 65534


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a campaign is."""
    where = str(tmp_path / "a.db") if request.param == "sqlite" else str(request.getfixturevalue("new_database")())
    stores.create(where, {}, [NewSample(f"s{row}") for row in range(5)], now=0.0).close()
    return where


@contextmanager
def running(work: Callable[[int], None]) -> Iterator[tuple[int, bytes]]:
    """A process that runs ``work(pipe)``, and what it wrote there first. It is killed at the end if it still runs."""
    reader, writer = os.pipe()
    process = start(partial(work, writer))
    os.close(writer)
    try:
        yield process, os.read(reader, 100)
    finally:
        os.close(reader)
        with suppress(ChildProcessError, ProcessLookupError):
            kill(process)


def hold(place: str, pipe: int) -> None:
    with stores.open(place) as store, store.exclusive("train") as mine:
        os.write(pipe, b"holds" if mine else b"refused")
        time.sleep(60)


def hold_with_children(place: str, pipe: int) -> None:
    """One child by fork, one by exec; the numbers of both."""
    with stores.open(place) as store, store.exclusive("train") as mine:
        assert mine
        forked = start(lambda: time.sleep(60))
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
        os.write(pipe, f"{forked} {other.pid}".encode())
        time.sleep(60)


def assert_free_at_once(place: str) -> None:
    began = time.monotonic()
    with stores.open(place) as store, store.exclusive("train", 30.0) as mine:
        assert mine
    assert time.monotonic() - began < 1.0


def test_a_holder_that_is_killed_holds_nothing(place: str) -> None:
    with stores.open(place) as store:
        for _ in range(3):
            with running(partial(hold, place)) as (process, said):
                assert said == b"holds"
                with store.exclusive("train") as mine, store.exclusive("export") as other:
                    assert (mine, other) == (False, True)
                store.log(1.0, "nobody is kept from writing")
                assert kill(process)
                assert_free_at_once(place)


def test_children_of_a_killed_holder_hold_nothing(place: str) -> None:
    with running(partial(hold_with_children, place)) as (process, said):
        children = [int(number) for number in said.split()]
        try:
            with stores.open(place) as store, store.exclusive("train") as mine:
                assert not mine
            assert kill(process)
            for child in children:
                os.kill(child, 0)
            assert_free_at_once(place)
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)


def test_a_child_that_leaves_takes_nothing_from_its_parent(place: str) -> None:
    with stores.open(place) as store:
        held = store.exclusive("train")
        assert held.__enter__()
        child = start(lambda: held.__exit__(None, None, None))
        assert os.waitpid(child, 0)[1] == 0
        with running(partial(hold, place)) as (_, said):
            assert said == b"refused"
        held.__exit__(None, None, None)
        assert_free_at_once(place)


def test_a_campaign_is_the_same_under_another_name(tmp_path: Path) -> None:
    stores.create(tmp_path / "a.db", {}, [], now=0.0).close()
    (tmp_path / "link.db").symlink_to("a.db")
    with stores.open(tmp_path / "a.db") as store, stores.open(tmp_path / "link.db") as other:
        with store.exclusive("train") as mine, other.exclusive("train") as again:
            assert (mine, again) == (True, False)
        assert (tmp_path / "a.db-train").stat().st_size == 0


def test_a_folder_that_cannot_be_written() -> None:
    folder = Path(tempfile.mkdtemp())
    stores.create(folder / "a.db", {}, [], now=0.0).close()
    folder.chmod(0o555)

    def work() -> None:
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        with (
            stores.open(folder / "a.db") as store,
            pytest.raises(StoreReadOnly, match="permissions"),
            store.exclusive("train"),
        ):
            pass

    try:
        assert os.waitpid(start(work), 0)[1] == 0
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_schemas_have_locks_of_their_own(new_database: Callable[[], str]) -> None:
    first, second = (stores.create(new_database(), {}, [], now=0.0) for _ in range(2))
    with first.exclusive("train") as mine, second.exclusive("train") as other:
        assert (mine, other) == (True, True)
    first.close()
    second.close()


def test_no_lock_and_no_connection_is_left(new_database: Callable[[], str]) -> None:
    url = new_database()
    store, watch = stores.create(url, {}, [], now=0.0), PostgreSQL(url)
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    with watch.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        before = connection.exec_driver_sql(sessions).scalar_one()
        with store.exclusive("train"), store.exclusive("train"):
            assert connection.exec_driver_sql(locks).scalar_one() == 1
            assert connection.exec_driver_sql(sessions).scalar_one() > before
        assert connection.exec_driver_sql(locks).scalar_one() == 0
        end = time.monotonic() + 10
        while connection.exec_driver_sql(sessions).scalar_one() > before and time.monotonic() < end:
            time.sleep(0.02)
        assert connection.exec_driver_sql(sessions).scalar_one() <= before
    store.close()
    watch.close()


def test_a_server_that_restarts_ends_it_quietly(postgresql: Server, new_database: Callable[[], str]) -> None:
    url = new_database()
    with stores.create(url, {}, [], now=0.0) as store:
        with store.exclusive("train") as mine:
            assert mine
            postgresql.crash()
            postgresql.start()
        with store.exclusive("train") as mine:
            assert mine
