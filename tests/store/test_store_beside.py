"""Journals, links and pipes that somebody planted beside a campaign's file."""

from __future__ import annotations

import multiprocessing
import os
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from ally import store as stores
from ally.errors import StoreDamaged, StoreMissing
from ally.store import NewAnswer, NewSample
from ally.store.sqlite import SQLite

MAGIC = bytes.fromhex("d9d505f920a163d7")
SECTOR, NONCE = 512, 12345
FORK = multiprocessing.get_context("fork")


def make(path: Path) -> Path:
    stores.create(path, {}, [NewSample("a"), NewSample("b")], now=0.0).close()
    return path


def page_size(path: Path) -> int:
    (size,) = struct.unpack(">H", path.read_bytes()[16:18])
    return int(size)


def journal(path: Path, *, pages: int | None = None, names: str | None = None) -> bytes:
    """A journal that SQLite plays back: the second page as it is, and the name of a super-journal."""
    size = page_size(path)
    page = path.read_bytes()[size : 2 * size]
    checksum = (NONCE + sum(page[place] for place in range(size - 200, 0, -200))) & 0xFFFFFFFF
    known = path.stat().st_size // size if pages is None else pages
    header = MAGIC + struct.pack(">5I", 1, NONCE, known, SECTOR, size)
    record = struct.pack(">I", 2) + page + struct.pack(">I", checksum)
    name = b"" if names is None else names.encode()
    end = struct.pack(">2I", len(name), sum(name)) + MAGIC
    locking_page = struct.pack(">I", 2**30 // size + 1)
    return header.ljust(SECTOR, b"\0") + record + (locking_page + name + end if names is not None else b"")


def in_time(work: Callable[[], None]) -> None:
    """Runs `work` in a forked process, which must end well within a few seconds."""
    child = FORK.Process(target=work)
    child.start()
    child.join(10)
    ended = child.exitcode
    child.kill()
    assert ended == 0


def test_a_journal_that_names_another_file_is_refused_and_nothing_is_deleted(tmp_path: Path) -> None:
    path, precious = make(tmp_path / "a.db"), tmp_path / "thesis.txt"
    precious.write_text("four years of work")
    planted = journal(path, names=str(precious))
    (tmp_path / "a.db-journal").write_bytes(planted)
    with pytest.raises(StoreDamaged, match=r"a\.db-journal names another file, which SQLite would delete"):
        stores.open(path)
    assert precious.read_text() == "four years of work"
    assert (tmp_path / "a.db-journal").read_bytes() == planted


def test_a_journal_that_comes_while_the_campaign_is_open_is_refused_too(tmp_path: Path) -> None:
    path, precious = make(tmp_path / "a.db"), tmp_path / "thesis.txt"
    precious.write_text("four years of work")
    with stores.open(path, sqlite_journal="rollback") as store:
        (tmp_path / "a.db-journal").write_bytes(journal(path, names=str(precious)))
        with pytest.raises(StoreDamaged, match="names another file"):
            store.samples.size()
    assert precious.exists()


def test_a_journal_beside_the_file_behind_a_link_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    path, precious = make(folder / "a.db"), tmp_path / "thesis.txt"
    precious.write_text("four years of work")
    (tmp_path / "link.db").symlink_to(path)
    stores.open(tmp_path / "link.db").close()
    (folder / "a.db-journal").write_bytes(journal(path, names=str(precious)))
    with pytest.raises(StoreDamaged, match="names another file"):
        stores.open(tmp_path / "link.db")
    assert precious.exists()


def test_a_journal_cannot_make_the_file_longer_than_it_was(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    size = path.stat().st_size
    (tmp_path / "a.db-journal").write_bytes(journal(path, pages=2**31))
    with pytest.raises(StoreDamaged, match="would make the campaign's file 8796093022208 bytes long"):
        stores.open(path)
    assert path.stat().st_size == size


def test_a_journal_that_a_killed_program_left_is_played_back(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    with stores.open(path, sqlite_journal="rollback") as store:
        store.answer("ann", 1.0, [NewAnswer("a", "cat")])

    def die_in_the_middle() -> None:
        database = SQLite(path, journal="rollback")
        with database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA cache_spill = 1")
            connection.exec_driver_sql("PRAGMA cache_size = 1")
            connection.exec_driver_sql("UPDATE samples SET id = id || hex(randomblob(9000))")
            connection.exec_driver_sql("DELETE FROM answers")
            assert (tmp_path / "a.db-journal").stat().st_size > 0
            os._exit(0)

    in_time(die_in_the_middle)
    assert (tmp_path / "a.db-journal").read_bytes().startswith(MAGIC)
    with stores.open(path, sqlite_journal="rollback") as store:
        assert [sample.id for sample in store.samples.all()] == ["a", "b"]
        assert len(store.answers.labels()) == 1
        assert store.check() == []


@pytest.mark.parametrize("ending", ["journal", "wal", "shm", "turn"])
@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe", "folder", "socket"])
def test_only_plain_files_may_lie_beside_a_campaign(tmp_path: Path, ending: str, kind: str) -> None:
    path, precious = make(tmp_path / "a.db"), tmp_path / "thesis.txt"
    precious.write_text("four years of work")
    planted = tmp_path / f"a.db-{ending}"
    planted.unlink(missing_ok=True)
    plant(kind, planted, precious, tmp_path)

    def work() -> None:
        with pytest.raises(StoreDamaged, match=rf"a\.db-{ending} is (a link|not a file)"):
            stores.open(path)

    in_time(work)
    assert precious.read_text() == "four years of work"
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe"])
def test_the_lock_of_long_work_is_a_plain_file(tmp_path: Path, kind: str) -> None:
    path, precious = make(tmp_path / "a.db"), tmp_path / "thesis.txt"
    precious.write_text("four years of work")
    plant(kind, tmp_path / "a.db-training", precious, tmp_path)

    def work() -> None:
        with (
            stores.open(path) as store,
            pytest.raises(StoreDamaged, match=r"a\.db-training is"),
            store.exclusive("training"),
        ):
            pass

    in_time(work)
    assert precious.read_text() == "four years of work"
    assert not (tmp_path / "new.txt").exists()


def plant(kind: str, planted: Path, precious: Path, folder: Path) -> None:
    if kind == "link":
        planted.symlink_to(precious)
    elif kind == "link to nothing":
        planted.symlink_to(folder / "new.txt")
    elif kind == "pipe":
        os.mkfifo(planted)
    elif kind == "folder":
        planted.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(planted))


@pytest.mark.parametrize("ending", ["journal", "wal"])
def test_another_file_under_the_name_of_a_journal_is_left_alone(tmp_path: Path, ending: str) -> None:
    path, precious = make(tmp_path / "a.db"), tmp_path / "thesis.txt"
    precious.write_text("four years of work")
    planted = tmp_path / f"a.db-{ending}"
    planted.unlink(missing_ok=True)
    os.link(precious, planted)
    with pytest.raises(StoreDamaged, match="one file under 2 names"):
        stores.open(path)
    assert precious.read_text() == "four years of work"


def test_files_beside_a_private_campaign_are_private(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    for other in tmp_path.glob("a.db-*"):
        other.unlink()
    path.chmod(0o600)
    with stores.open(path) as store:
        with store.exclusive("training") as mine:
            assert mine
        store.answer("ann", 1.0, [NewAnswer("a", "cat")])
        store.backup()
    modes = {other.name: stat.S_IMODE(other.stat().st_mode) for other in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert {"a.db-turn", "a.db-training", "a.db.backup-0001"} <= set(modes)


def test_a_pipe_is_no_campaign(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.db")

    def work() -> None:
        with pytest.raises(StoreMissing, match="no campaign"):
            stores.open(tmp_path / "a.db")

    in_time(work)
