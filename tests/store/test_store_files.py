"""What happens to a SQLite file: damage, full disks, missing rights, other programs, other versions."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import resource
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from ally import store as stores
from ally.errors import (
    IdError,
    InputError,
    PoolExhausted,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreExists,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreVersion,
)
from ally.store import NewAnswer, NewSample, places, sqlite
from ally.store.schema import VERSION
from ally.store.sql import SQLStore
from ally.store.versions import upgrade

FORK = multiprocessing.get_context("fork")
NOBODY = 65534


def make(path: Path, n: int = 50, **more: object) -> stores.Store:
    return stores.create(path, {}, (NewSample(f"s{row}") for row in range(n)), now=0.0, **more)  # type: ignore[arg-type]


def say(store: stores.Store, sample: str, value: str = "cat") -> None:
    store.answer("ann", 1.0, [NewAnswer(sample, value)])


def say_much(store: stores.Store, first: int, given: list[int] | None = None) -> None:
    """Long answers to the samples from `first` on; notes the acknowledged ones."""
    for row in range(first, 50):
        store.answer("ann", 1.0, [NewAnswer(f"s{row}", "x" * 4000)])
        if given is not None:
            given.append(row)


def in_child(work: Callable[[], None]) -> None:
    """Runs `work` in a forked process, and fails with it."""
    child = FORK.Process(target=work)
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_name_that_is_no_unicode_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"p\xffts?#%20.db")
    make(path).close()
    with stores.open(path) as opened:
        assert opened.check() == []
    assert path.is_file()


@pytest.mark.parametrize(
    ("version", "safe"), [("3.40.1", False), ("3.51.2", False), ("3.51.3", True), ("3.52.0", True), ("4.0.0", True)]
)
def test_wal_is_used_from_the_version_that_is_safe(version: str, safe: bool) -> None:
    assert sqlite.wal_is_safe(version) is safe


@pytest.mark.filterwarnings("ignore:.*is in WAL mode:RuntimeWarning")
@pytest.mark.parametrize(("journal", "mode", "synchronous"), [("wal", "wal", 2), ("rollback", "truncate", 3)])
def test_every_commit_is_flushed(tmp_path: Path, journal: sqlite.Journal, mode: str, synchronous: int) -> None:
    make(tmp_path / "a.db").close()
    database = sqlite.SQLite(tmp_path / "a.db", journal=journal)
    with database.engine.connect() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "mmap_size", "foreign_keys")
        }
    database.close()
    assert found == {"journal_mode": mode, "synchronous": synchronous, "mmap_size": 0, "foreign_keys": 1}


def test_a_wal_file_is_left_or_reported_by_an_affected_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    make(path).close()
    monkeypatch.setattr(sqlite, "wal_is_safe", lambda: False)
    with pytest.warns(RuntimeWarning, match="WAL mode"):
        first = stores.open(path, sqlite_journal="wal")
    with pytest.warns(RuntimeWarning, match="close the other programs"):
        second = stores.open(path)
    say(second, "s1")
    first.close()
    second.close()
    with stores.open(path) as store:
        assert len(store.answers.labels()) == 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


MOUNTS = """/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/local tmpfs rw 0 0
//nas/share /mnt/with\\040blank cifs rw 0 0
me@host: /mnt/far fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a.db", "ext4"),
        ("/home/me/a.db", "nfs4"),
        ("/homes/a.db", "ext4"),
        ("/home/local/a.db", "tmpfs"),
        ("/mnt/with blank/a.db", "cifs"),
        ("/mnt/far/x/a.db", "fuse.sshfs"),
    ],
)
def test_network_file_systems_are_known_by_their_mounts(path: str, kind: str) -> None:
    assert places.file_system(Path(path), MOUNTS) == kind
    assert (kind in places.NETWORK) == (kind in ("nfs4", "cifs", "fuse.sshfs"))


def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr(places, "_MOUNTS", mounts)
    with pytest.raises(StoreError, match=r"network file system \(nfs\).*local disk"):
        make(tmp_path / "a.db")
    assert [path.name for path in tmp_path.iterdir()] == ["mounts"]


def test_places_without_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="no campaign"):
        stores.open(tmp_path / "none.db")
    with pytest.raises(StoreMissing, match="memory"):
        stores.open("memory")
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreMissing, match="holds no campaign"):
        stores.open(tmp_path / "empty.db")
    with pytest.raises(StoreError, match="folder"):
        make(tmp_path / "no" / "a.db")
    with pytest.raises(InputError, match="mysql"):
        stores.open("mysql://host/a")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(StoreMissing, match="holds no campaign"):
        stores.open(tmp_path / "other.db")


def test_names_are_taken_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("a?mode=ro#x%20.db", "sqlite:///b.db"):
        stores.create(place, {}, [NewSample("s")], now=0.0).close()
        stores.open(place).close()
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".db"} == {"a?mode=ro#x%20.db", "b.db"}


def test_a_campaign_is_created_whole_or_not_at_all(tmp_path: Path) -> None:
    def samples() -> Iterator[NewSample]:
        yield from (NewSample(f"s{row}") for row in range(6000))
        raise InterruptedError

    with pytest.raises(InterruptedError):
        stores.create(tmp_path / "a.db", {}, samples(), now=0.0)
    with pytest.raises(IdError):
        stores.create(tmp_path / "a.db", {}, [NewSample("a"), NewSample("a")], now=0.0)
    with pytest.raises(PoolExhausted):
        make(tmp_path / "a.db", 5, reserve={"evaluate": 6})
    with pytest.raises(ZeroDivisionError):
        stores.create(tmp_path / "a.db", lambda: {"bad": 1 / 0}, [NewSample("a")], now=0.0)
    assert list(tmp_path.iterdir()) == []
    make(tmp_path / "a.db").close()
    with pytest.raises(StoreExists, match=r"a\.db exists already"):
        make(tmp_path / "a.db")


@pytest.mark.parametrize("damage", ["half", "first page", "text", "tail"])
def test_a_damaged_file_is_refused_with_a_way_out(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.db"
    with make(path, 3000) as store:
        backup = store.backup()
    size = path.stat().st_size
    if damage == "text":
        path.write_text("id,label\n" * 500)
    else:
        os.truncate(path, {"half": size // 2, "first page": 700, "tail": size - 1000}[damage])
    with pytest.raises(StoreDamaged, match="ally doctor") as error:
        stores.open(path)
    assert str(backup) in str(error.value)
    with stores.open(backup) as store:
        assert store.check() == []


def test_garbage_behind_the_last_page_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with make(path) as store:
        say(store, "s1")
    with path.open("ab") as file:
        file.write(b"\xff" * 1000)
    with stores.open(path) as store:
        assert (len(store.answers.labels()), store.check()) == (1, [])
        say(store, "s2")
        assert store.check() == []


@pytest.mark.filterwarnings("ignore:.*is in WAL mode:RuntimeWarning")
def test_a_torn_end_of_the_log_costs_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = make(path, sqlite_journal="wal")
    say(store, "s1")
    whole = Path(f"{path}-wal").stat().st_size
    say(store, "s2")
    torn = tmp_path / "torn.db"
    shutil.copy(path, torn)
    shutil.copy(f"{path}-wal", f"{torn}-wal")
    store.close()
    os.truncate(f"{torn}-wal", whole + 5000)
    with stores.open(torn, sqlite_journal="wal") as store:
        assert [answer.sample for answer in store.answers.all()] == ["s1"]
        assert store.check() == []
        say(store, "s2")


def _as_nobody() -> None:
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def test_a_read_only_file_can_be_read(open_folder: Path) -> None:
    path = open_folder / "a.db"
    with make(path) as store:
        say(store, "s1")
    path.chmod(0o444)
    open_folder.chmod(0o555)

    def work() -> None:
        _as_nobody()
        with stores.open(path) as store:
            assert len(store.answers.labels()) == 1
            with pytest.raises(StoreReadOnly, match="permissions"):
                say(store, "s2")
            assert len(store.answers.labels()) == 1

    try:
        in_child(work)
    finally:
        open_folder.chmod(0o755)


def test_a_file_size_limit_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with make(path) as store:
        say(store, "s0")

    def work() -> None:
        limit = path.stat().st_size + 30_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        given: list[int] = []
        with stores.open(path, patience=2.0) as store:
            with pytest.raises(StoreFull, match="nothing was recorded"):
                say_much(store, 1, given)
            assert 0 < len(given) < 49
            assert [answer.sample for answer in store.answers.all()] == [f"s{row}" for row in (0, *given)]

    in_child(work)
    with stores.open(path) as store:
        assert store.check() == []
        say(store, "s49")


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    make(tmp_path / "a.db").close()
    database = sqlite.SQLite(tmp_path / "a.db")
    store = SQLStore(database)
    with database.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreFull, match="free some space"):
        say_much(store, 0)
    kept = list(store.answers.all())
    with database.engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 1000}")
    store.answer("ann", 1.0, [NewAnswer("s49", "x" * 2000)])
    assert [answer.number for answer in store.answers.all()] == list(range(1, len(kept) + 2))
    assert store.check() == []
    store.close()


def test_a_full_disk_is_named_in_a_transaction_of_several_calls(tmp_path: Path) -> None:
    """The first error ends the transaction, and what comes after it complains of a missing savepoint."""
    make(tmp_path / "a.db").close()
    database = sqlite.SQLite(tmp_path / "a.db")
    store = SQLStore(database)
    with database.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreFull, match="free some space"):
        store.together(lambda: say_much(store, 0))
    assert store.answers.last_number() == 0
    store.close()


def test_a_file_in_a_folder_that_cannot_be_written_is_reported(open_folder: Path) -> None:
    path = open_folder / "a.db"
    make(path).close()
    for other in open_folder.iterdir():
        other.chmod(0o666)
    open_folder.chmod(0o555)
    (open_folder / "a.db-journal").unlink(missing_ok=True)

    def work() -> None:
        _as_nobody()
        with stores.open(path) as store:
            assert any("no answer can be recorded" in problem for problem in store.check())

    try:
        in_child(work)
    finally:
        open_folder.chmod(0o755)


def test_a_busy_store_waits_and_then_reports(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = make(path, patience=0.3)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match="in use by others"):
        say(store, "s1")
    patient = stores.open(path)
    threading.Timer(0.5, lambda: other.execute("ROLLBACK")).start()
    say(patient, "s1")
    assert store.count(2.0).labelled == 1
    for one in (store, patient, other):
        one.close()


def test_a_queue_lock_never_released_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make(path).close()
    ready, end = FORK.Event(), FORK.Event()

    def work() -> None:
        with sqlite.Turns(tmp_path / "a.db").mine(1.0):
            ready.set()
            end.wait(30)

    child = FORK.Process(target=work)
    child.start()
    assert ready.wait(30)
    began = time.monotonic()
    with stores.open(path, patience=0.5) as store:
        say(store, "s1")
        assert 0.4 < time.monotonic() - began < 10
        end.set()
        child.join()
        began = time.monotonic()
        say(store, "s2")
        assert time.monotonic() - began < 0.4


def test_a_store_is_not_shared_with_a_fork(tmp_path: Path) -> None:
    store = make(tmp_path / "a.db")

    def work() -> None:
        with pytest.raises(StoreError, match="another process"):
            say(store, "s1")
        store.close()

    in_child(work)
    say(store, "s1")
    store.close()


def test_a_backup_ends_and_is_whole_while_others_write(tmp_path: Path) -> None:
    ids = [f"s{row}{'x' * 900}" for row in range(20_000)]  # 50 MB
    store = stores.create(tmp_path / "a.db", {}, map(NewSample, ids), now=0.0)
    writer = stores.open(tmp_path / "a.db")
    end = threading.Event()

    def work() -> None:
        for row in itertools.count():
            if end.is_set():
                return
            say(writer, ids[row % len(ids)])

    thread = threading.Thread(target=work)
    thread.start()
    impatience = threading.Timer(60, end.set)
    impatience.start()
    copies = [store.backup() for _ in range(3)]
    assert not end.is_set(), "the backups ended only when nobody wrote any more"
    impatience.cancel()
    end.set()
    thread.join()
    assert [path.name for path in copies] == [f"a.db.backup-000{number}" for number in (1, 2, 3)]
    for path in copies:
        with stores.open(path) as copy:
            assert copy.check() == []
    writer.close()
    store.close()


def test_an_older_file_is_upgraded_after_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        upgrade(connection, "0001")
        connection.exec_driver_sql("INSERT INTO campaign VALUES (1, 0.0, 0, '{}')")
        connection.exec_driver_sql("INSERT INTO samples VALUES (0, 'a', NULL, 'pool', 0, 5)")
        connection.exec_driver_sql("INSERT INTO calls VALUES (1, 'ann', NULL, 1.0, 'x', '[1]')")
        connection.exec_driver_sql("""INSERT INTO answers VALUES (1, 1, 0, 'ann', 1.0, 'label', '"cat"', NULL, NULL)""")
    engine.dispose()
    with pytest.warns(UserWarning, match=rf"upgraded from schema 0001 to {VERSION}.*a\.db\.backup-0001"):
        store = stores.open(path)
    assert store.answers.labels()[0].value == "cat"
    assert store.models.put(2.0, seen=1, labels=1) == 1
    assert store.check() == []
    store.close()
    stores.open(path).close()
    assert sorted(found.name for found in tmp_path.iterdir()) == [
        "a.db",
        "a.db-journal",
        "a.db-turn",
        "a.db.backup-0001",
    ]
    with sqlite3.connect(tmp_path / "a.db.backup-0001") as backup:
        assert backup.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
        assert backup.execute("SELECT count(*) FROM answers").fetchone() == (1,)


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreVersion, match="newer version of ally"):
        stores.open(tmp_path / "a.db")
