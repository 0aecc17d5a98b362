"""`check` finds each kind of damage that SQL can express."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ally import store as stores
from ally.errors import StoreDamaged
from ally.store import NewAnswer, NewSample, Ranked, Store, sqlite
from ally.store.checking import INVARIANTS
from ally.store.sqlite import Journal

DAMAGE = {
    "the campaign is not one line": "DELETE FROM campaign",
    "samples have no role": "UPDATE samples SET role = 'king' WHERE row = 3",
    "models are neither good nor failed": "UPDATE models SET state = 'best'",
    "models have seen answers that do not exist": "UPDATE models SET seen = 99",
    "samples were asked for as nothing known": "UPDATE asked SET kind = 'king' WHERE query = 2",
    "queries are of no known kind": "UPDATE queries SET kind = 'king' WHERE number = 2",
    "values of samples.hash are none": "UPDATE samples SET hash = 5 || char(0)",
    "values of answers.at are none": "UPDATE answers SET at = 1e999",
    "values of models.labels are none": "UPDATE models SET labels = -1",
    "values of weights.data are none": "UPDATE weights SET data = 'text'",
    "the reason for a sample is": "UPDATE asked SET why = '[]' WHERE query = 1",
    "the receipt of a call is": "UPDATE calls SET receipt = '[0.5]' WHERE number = 1",
    "the report of a model": """UPDATE models SET report = '{"notes": 5}'""",
    "the event 'note'": "INSERT INTO events VALUES (1, 0.0, 'note', '{}')",
    "rows of samples are not 0 to n - 1": "UPDATE samples SET row = 90 WHERE row = 19",
    "answers are missing from the record": "DELETE FROM answers WHERE number = 2",
    "calls are missing from the record": "UPDATE calls SET number = 9 WHERE number = 3",
    "queries are missing from the record": "DELETE FROM queries WHERE number = 2",
    "answers are to samples that do not exist": "UPDATE answers SET sample = 77 WHERE number = 1",
    "answers name a query that did not ask about their sample": "UPDATE answers SET query = 2 WHERE number = 1",
    "answers are neither label, skip nor undo": "UPDATE answers SET kind = 'guess' WHERE number = 1",
    "labels have no value, or skips and undos have one": "UPDATE answers SET value = NULL WHERE number = 1",
    (
        "undos do not name an earlier answer of the same annotator to the same sample"
    ): "UPDATE answers SET undoes = 1 WHERE number = 4",
    "leases are for samples their query did not ask about": "UPDATE leases SET query = 1",
    "queries asked about nothing": "DELETE FROM asked WHERE query = 3",
    "samples kept for evaluation were asked about for training": "UPDATE asked SET kind = 'evaluate' WHERE query = 2",
    "places of a ranking are missing": "DELETE FROM ranking WHERE place = 3",
    "are not JSON": "UPDATE answers SET value = 'cat' WHERE number = 1",
    "the schema is": "UPDATE alembic_version SET version_num = '0001'",
    "points to nothing": "DELETE FROM models",
}


def test_every_invariant_is_tried() -> None:
    assert set(INVARIANTS) <= set(DAMAGE)


@pytest.mark.parametrize(("words", "damage"), DAMAGE.items(), ids=DAMAGE)
def test_damage_is_found(tmp_path: Path, words: str, damage: str) -> None:
    path = tmp_path / "a.db"
    store = stores.create(path, {}, (NewSample(f"s{row}") for row in range(20)), now=0.0)
    query = store.ask("ann", 3, 1.0, 100.0)
    for id in query.ids:
        store.answer("ann", 2.0, [NewAnswer(id, "cat")], query.number)
    store.undo("ann", 3.0)
    store.ask("bob", 2, 4.0, 100.0)
    store.ask("eve", 2, 4.0, 100.0)
    store.models.put(5.0, seen=4, labels=2, weights=b"w", ranking=[Ranked(row, 1.0) for row in range(9)])
    assert store.check() == []
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    found = store.check()
    if not any(words in problem for problem in found):
        # Strays are reported first, and alone; the question itself must find the damage too.
        with sqlite3.connect(path) as connection:
            assert found
            assert connection.execute(INVARIANTS[words]).fetchone()[0] > 0
        connection.close()
    store.close()


def change_answers(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET at = 1e999")
    connection.close()


def copy_over(path: Path) -> None:
    """A changed copy takes the place of the file on the disk, with its times."""
    other = path.with_name("other.db")
    shutil.copy2(path, other)
    change_answers(other)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    with path.open("r+b") as file:
        file.write(other.read_bytes())
    os.utime(path, ns=times)


@pytest.mark.parametrize("journal", ["wal", "rollback"])
@pytest.mark.parametrize("change", [change_answers, copy_over])
def test_a_known_file_that_others_changed_is_looked_through_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Journal, change: Callable[[Path], None]
) -> None:
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(sqlite, "wal_is_safe", lambda version="": journal == "wal")
    path, looks = tmp_path / "a.db", []

    def look(_: Store) -> None:
        looks.append(1)

    store = stores.create(path, {}, (NewSample(f"s{row}") for row in range(20)), now=0.0, sqlite_journal=journal)
    store.answer("ann", 2.0, [NewAnswer("s1", "cat")])
    other = stores.open(path, sqlite_journal=journal, check_foreign=look)
    other.answer("bob", 3.0, [NewAnswer("s2", "cat")])
    store.answer("ann", 4.0, [NewAnswer("s3", "cat")])
    other.close()
    store.close()
    stores.open(path, sqlite_journal=journal, check_foreign=look).close()
    assert not looks, "what its own processes wrote is known"
    change(path)
    with pytest.raises(StoreDamaged, match=r"values of answers\.at are none that ally writes"):
        stores.open(path, sqlite_journal=journal, check_foreign=look)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET at = 5.0")
    connection.close()
    for _ in range(2):
        stores.open(path, sqlite_journal=journal, check_foreign=look).close()
    assert looks == [1], "it is looked through once"
