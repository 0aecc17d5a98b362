"""Models, threads, backups, and the end of a store."""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from ally.errors import AllyError, InputError
from ally.store import Measure, NewSample, Ranked
from ally.store import open as open_store
from ally.testing.store.tools import Check, Create, ask, end, labels, make, refused


def a_model_serves_when_it_is_whole(create: Create) -> None:
    store = make(create, 30)
    assert store.models.newest() is None
    first = store.models.put(1.0, seen=0, labels=0, weights=b"\x00one", report={"loss": 0.5}, ranking=[Ranked(9, 1.0)])

    def interrupted() -> Iterator[Ranked]:
        yield Ranked(3, 1.0)
        assert ask(store, "ann", 1, 2.0, 1.0).ids == ["s9"], "a model served before it was whole"
        raise InterruptedError

    with suppress(InterruptedError):
        store.models.put(2.0, seen=0, labels=0, ranking=interrupted())
    serving = store.models.newest()
    assert serving is not None
    assert (serving.number, serving.state, serving.report) == (first, "good", {"loss": 0.5})
    assert ask(store, "bob", 1, 4.0).ids == ["s9"]
    store.models.put_failure(5.0, seen=0, labels=0, report={"error": "killed"})
    assert [model.state for model in store.models.all()] == ["good", "failed", "failed"]
    assert store.models.newest() == serving
    for number in range(4):
        last = store.models.put(6.0, seen=0, labels=0, weights=bytes([number]), map=bytes([number]), keep_weights=2)
    models = store.models
    assert (models.map(last), models.map(last - 1), models.map(first)) == (models.weights(last), None, None)
    assert (models.weights(last), models.weights(last - 1), models.weights(last - 2), models.weights(first)) == (
        b"\x03",
        b"\x02",
        None,
        None,
    )
    refused(InputError, store.models.put, 7.0, seen=0, labels=0, ranking=[Ranked(1, math.nan)])
    refused(InputError, store.models.put, 7.0, seen=0, labels=0, measures=[Measure("accuracy", math.inf)])
    newest = store.models.newest()
    assert newest is not None
    assert newest.number == last
    end(store)


def figures_and_events_come_back(create: Create) -> None:
    store = make(create, 2)
    figures = [Measure("accuracy", 0.5, 0.4, 0.6, 100), Measure("kappa", 0.9)]
    first = store.models.put(1.0, seen=0, labels=0, measures=figures)
    second = store.models.put(2.0, seen=0, labels=0)
    store.models.put_measures(second, [Measure("accuracy", 0.6)])
    store.models.put_measures(second, [Measure("accuracy", 0.7)])
    assert store.models.measures("accuracy") == [(first, figures[0]), (second, Measure("accuracy", 0.7))]
    assert len(store.models.measures()) == 3
    refused(InputError, store.models.put_measures, 99, figures)
    assert [store.log(float(at), "retrain", {"at": at}) for at in range(3)] == [1, 2, 3]
    assert [(event.number, event.at, event.kind, event.detail) for event in store.events(since=2)] == [
        (3, 2.0, "retrain", {"at": 2})
    ]
    end(store)


def threads_share_a_store(create: Create) -> None:
    store = make(create, 80)

    def work(person: int) -> list[str]:
        found: list[str] = []
        for turn in range(5):
            query = ask(store, f"p{person}", 2, 1.0 + turn, key=f"k{turn}")
            store.answer(f"p{person}", 2.0 + turn, labels(query.ids), query.number, key=f"k{turn}")
            found += query.ids
        return found

    with ThreadPoolExecutor(8) as threads:
        lists = list(threads.map(work, range(8)))
    every = [id for part in lists for id in part]
    assert len(every) == len(set(every)) == 80
    assert [answer.number for answer in store.answers.all()] == list(range(1, 81))
    end(store)


def one_holder_at_a_time(create: Create) -> None:
    store = make(create, 3)
    with store.exclusive("train") as mine, store.exclusive("train") as again, store.exclusive("export") as other:
        assert (mine, again, other) == (True, False, True)
        store.answer("ann", 1.0, labels(["s0"]))
    began = time.monotonic()
    with store.exclusive("train") as mine, store.exclusive("train", 0.2) as again:
        assert (mine, again) == (True, False)
    assert 0.2 <= time.monotonic() - began < 5.0
    with suppress(ZeroDivisionError), store.exclusive("train"):
        raise ZeroDivisionError
    inside, most = 0, 0
    guard = threading.Lock()

    def work(_: int) -> bool:
        nonlocal inside, most
        with store.exclusive("train", 30.0) as mine:
            with guard:
                inside += mine
                most = max(most, inside)
            time.sleep(0.01)
            with guard:
                inside -= mine
        return mine

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(12)))
    assert most == 1
    names: list[Any] = ["", "Train", "a b", "../x", "wal", "journal", "shm", "turn", "a" * 41, 7, None]
    for name in names:
        refused(InputError, store.exclusive, name)
    for seconds in (-1.0, math.nan, math.inf):
        refused(InputError, store.exclusive, "train", seconds)
    end(store)
    assert "closed" in refused(AllyError, store.exclusive, "train")


def numbers_out_of_range(create: Create) -> None:
    store = make(create, 3)
    for number in (-1, 99, 2**63, 2**70):
        refused(AllyError, store.samples.ids, [number])
        refused(AllyError, store.query, number)
        refused(AllyError, store.release, number)
        refused(AllyError, store.waiting, number)
        refused(AllyError, store.undo, "ann", 1.0, number)
        refused(AllyError, store.answer, "ann", 1.0, labels(["s0"]), number)
        refused(AllyError, store.models.put, 1.0, seen=0, labels=0, ranking=[Ranked(number, 1.0)])
    assert (store.count(2.0).answers, store.models.newest()) == (0, None)
    end(store)


def a_closed_store_says_so(create: Create) -> None:
    store = make(create, 3)
    store.close()
    store.close()
    assert "closed" in refused(AllyError, store.ask, "ann", 1, 1.0, 1.0)
    assert "closed" in refused(AllyError, store.answers.labels)


def a_backup_is_the_same_campaign(create: Create) -> None:
    store = create({"classes": ["cat"]}, (NewSample(f"s{row}", f"h{row}") for row in range(20)), 3)
    query = ask(store, "ann", 6, 1.0, key="k")
    store.answer("ann", 2.0, labels(query.ids[:3]), query.number, key="a")
    store.undo("ann", 3.0)
    store.models.put(
        4.0,
        seen=4,
        labels=2,
        weights=b"weights",
        ranking=[Ranked(row, 1.0) for row in range(9)],
        measures=[Measure("m", 1.0)],
    )
    store.log(5.0, "retrain")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.db"
        assert store.backup(path) == path
        refused(AllyError, store.backup, path)
        assert [other.name for other in Path(folder).iterdir()] == ["copy.db"]
        with open_store(path) as copy:
            assert copy.check() == []
            assert copy.settings == store.settings
            assert list(copy.answers.all()) == list(store.answers.all())
            assert list(copy.samples.all()) == list(store.samples.all())
            assert list(copy.events()) == list(store.events())
            assert (copy.answers.labels(), copy.models.all(), copy.models.measures()) == (
                store.answers.labels(),
                store.models.all(),
                store.models.measures(),
            )
            assert (copy.models.weights(1), list(copy.models.ranking(1))) == (b"weights", list(store.models.ranking(1)))
            assert copy.ask("ann", 6, 6.0, 100.0, key="k") == store.ask("ann", 6, 6.0, 100.0, key="k")
            assert copy.ask("bob", 6, 7.0, 100.0) == store.ask("bob", 6, 7.0, 100.0)
    end(store)


CHECKS: tuple[Check, ...] = (
    a_model_serves_when_it_is_whole,
    figures_and_events_come_back,
    threads_share_a_store,
    one_holder_at_a_time,
    numbers_out_of_range,
    a_closed_store_says_so,
    a_backup_is_the_same_campaign,
)
