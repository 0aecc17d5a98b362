"""Samples: ids, rows, roles, counts; and the settings beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ally.errors import AnswerError, IdError, InputError, PoolExhausted
from ally.store import Added, NewAnswer, NewSample, Ranked
from ally.testing.store.tools import Check, Create, ask, end, labels, make, refused


def rows_follow_the_order_of_arrival(create: Create) -> None:
    store = make(create, 3)
    assert store.samples.add([NewSample("s1"), NewSample("late", hash="abc"), NewSample("late")], 1.0) == Added(1, 0)
    assert [(sample.row, sample.id) for sample in store.samples.all()] == [(0, "s0"), (1, "s1"), (2, "s2"), (3, "late")]
    assert [sample.hash for sample in store.samples.all(after_row=2)] == ["abc"]
    assert store.samples.rows(["late", "s0"]) == [3, 0]
    assert store.samples.ids([1, 3, 1]) == ["s1", "late", "s1"]
    assert "'nobody'" in refused(IdError, store.samples.rows, ["s0", "nobody"])
    refused(IdError, store.samples.ids, [4])
    end(store)


def ids_of_every_kind(create: Create) -> None:
    odd = [
        "a b/ü.jpg",
        "'; DROP TABLE samples; --",
        "%s",
        "🐈",
        "..",
        "x" * 1000,
        "猫" * 833,
        "A",
        "a",
        "a ",
        "1",
        "01",
        "null",
    ]
    store = create({}, map(NewSample, odd), 0)
    assert store.samples.ids(range(len(odd))) == odd
    assert store.samples.rows(odd) == list(range(len(odd)))
    query = ask(store, "Zoë", len(odd), 1.0)
    store.answer("Zoë", 2.0, labels(query.ids), query.number)
    assert {answer.sample for answer in store.answers.all()} == set(odd)
    bad: list[Any] = ["", "nul\x00", "broken\udcff", "x" * 1001, "🐈" * 700, 7, None]
    for id in bad:
        refused(IdError, store.samples.add, [NewSample("fine"), NewSample(id)], 3.0)
    assert len(list(store.samples.all())) == len(odd)
    end(store)


def an_id_that_comes_twice_is_refused(create: Create) -> None:
    ids = [f"s{row}" for row in range(6000)]
    for twice in ([*ids[:5], "s3"], [*ids, "s17"]):
        assert twice[-1] in refused(IdError, create, {}, map(NewSample, twice), 0)


def settings_come_back(create: Create) -> None:
    settings: dict[str, Any] = {"classes": ["cat", "dög"], "eps": 0.2, "nested": {"none": None, "n": [1, 2]}}
    store = create(settings, [], 0)
    assert store.settings == settings
    store.change_settings(lambda before: {"classes": before["classes"][:1]})
    assert store.settings == {"classes": ["cat"]}
    refused(InputError, store.change_settings, lambda before: {**before, "bad": math.nan})
    refused(KeyError, store.change_settings, lambda before: {"eps": before["eps"]})
    assert store.settings == {"classes": ["cat"]}
    end(store)


def nobody_elses_change_of_settings_is_lost(create: Create) -> None:
    store = create({"total": 0}, [], 0)
    with ThreadPoolExecutor(8) as threads:
        for made in [
            threads.submit(store.change_settings, lambda before: {"total": before["total"] + 1}) for _ in range(40)
        ]:
            made.result()
    assert store.settings == {"total": 40}
    end(store)


def labels_come_with_their_samples(create: Create) -> None:
    store = create(
        {},
        (NewSample(f"s{row}", label="cat" if row % 3 == 0 else None) for row in range(6000)),
        0,
        labelled_by="folder",
    )
    said = list(store.answers.all())
    assert [(answer.number, answer.row) for answer in said] == [(1 + row // 3, row) for row in range(0, 6000, 3)]
    assert {(answer.annotator, answer.value, answer.at, answer.query) for answer in said} == {
        ("folder", "cat", 0.0, None)
    }
    assert (store.count(1.0).labelled, store.count(1.0).free) == (2000, 4000)
    late = [
        NewSample("s1", label="dog"),
        NewSample("late", label=0),
        NewSample("later"),
        NewSample("last", label=False),
    ]
    late.append(NewSample("s3", label="dog"))
    store.answer("ann", 1.0, labels(["s2", "s4"], "owl"))
    store.undo("ann", 1.5)
    late += [NewSample("s2", label="dog"), NewSample("s4", label="dog")]
    assert store.samples.add(late, 2.0, "table") == Added(3, 4)
    assert store.samples.add(late, 3.0, "table") == Added(0, 0)
    assert [(answer.sample, answer.value, answer.annotator, answer.at) for answer in store.answers.all(since=2003)] == [
        ("s1", "dog", "table", 2.0),
        ("late", 0, "table", 2.0),
        ("last", False, "table", 2.0),
        ("s4", "dog", "table", 2.0),
    ], "what somebody has answered is overruled, or what nobody has is not labelled"
    refused(AnswerError, store.samples.add, [NewSample("x"), NewSample("y", label=math.nan)], 4.0)
    refused(InputError, store.samples.add, [NewSample("x")], -1.0)
    refused(InputError, store.samples.add, [NewSample("x")], 4.0, "")
    assert len(list(store.samples.all(after_row=5999))) == 3
    for bad in ({"labelled_by": ""}, {"reserve": {"pool": 1}}, {"reserve": {"evaluate": -1}}):
        refused(InputError, create, {}, [], 0, **bad)
    refused(AnswerError, create, {}, [NewSample("x", label={1})], 0)
    end(store)


def roles_are_reserved_among_all(create: Create) -> None:
    def new(labelled: bool) -> list[NewSample]:
        return [
            NewSample(f"s{row}", label="cat" if labelled and row % 2 else None, role="pool" if row else "validate")
            for row in range(40)
        ]

    reserved = []
    for labelled in (True, False):
        store = create({}, new(labelled), 4, reserve={"evaluate": 12, "validate": 8})
        reserved.append(
            [[sample.id for sample in store.samples.all(role)] for role in ("evaluate", "validate", "pool")]
        )
        found = store.count(1.0)
        assert sum(found.roles[role].labelled for role in ("evaluate", "validate")) > 0 or not labelled
        assert (found.labelled, found.samples, found.roles["pool"].samples) == (20 * labelled, 40, 19)
        end(store)
    assert reserved[0] == reserved[1], "a label that was known kept a sample from being reserved"
    store = create({}, new(False), 4)
    order = ask(store, "ann", 39, 1.0, kind="random").ids
    assert (set(reserved[0][0]), set(reserved[0][1])) == (set(order[:12]), {"s0", *order[12:20]})
    end(store)
    assert "27 samples are free and 28 were" in refused(
        PoolExhausted, create, {}, new(True), 4, reserve={"evaluate": 12, "validate": 28}
    )


def settings_known_after_the_samples(create: Create) -> None:
    seen: list[str] = []

    def new() -> Iterator[NewSample]:
        for row in range(3):
            seen.append(f"s{row}")
            yield NewSample(seen[-1])

    store = create(lambda: {"seen": list(seen)}, new(), 0, reserve=lambda: {"evaluate": len(seen) - 1})
    assert store.settings == {"seen": ["s0", "s1", "s2"]}
    assert store.count(1.0).roles["evaluate"].samples == 2
    refused(InputError, create, {}, [], 0, reserve=lambda: {"pool": 1})
    refused(InputError, create, lambda: {"bad": math.nan}, [], 0)
    end(store)


def roles_are_kept_apart(create: Create) -> None:
    new = [NewSample(f"s{row}", role="evaluate" if row < 5 else "pool") for row in range(20)]
    store = create({}, new, 0)
    reserved = store.samples.reserve("validate", 4, 1.0)
    refused(PoolExhausted, store.samples.reserve, "validate", 12, 1.0)
    refused(InputError, store.samples.reserve, "pool", 1, 1.0)
    store.models.put(1.0, seen=0, labels=0, ranking=[Ranked(row, 1.0) for row in range(20)])
    pool = ask(store, "ann", 11, 2.0).ids
    assert set(pool) == {f"s{row}" for row in range(5, 20)} - set(reserved)
    assert {sample.id for sample in store.samples.all("validate")} == set(reserved)
    assert set(ask(store, "ann", 5, 2.0, kind="evaluate").ids) == {f"s{row}" for row in range(5)}
    assert set(ask(store, "ann", 4, 2.0, kind="validate").ids) == set(reserved)
    assert store.count(3.0).roles["validate"].leased == 4
    end(store)


def counts_add_up(create: Create) -> None:
    store = make(create, 20)
    query = ask(store, "ann", 5, 1.0, 10.0)
    store.answer("ann", 2.0, [*labels(query.ids[:2]), NewAnswer(query.ids[2], kind="skip")], query.number)
    gone = [f"s{row}" for row in range(20) if f"s{row}" not in query.ids][:3]
    store.samples.mark_gone([*gone, query.ids[0]])
    found = store.count(3.0)
    assert (found.samples, found.labelled, found.skipped, found.leased, found.gone, found.free) == (20, 2, 1, 2, 3, 12)
    assert (found.classes, found.answers, found.queries) == ({'"cat"': 2}, 3, 1)
    assert (store.count(11.0).leased, store.count(11.0).free) == (0, 14)
    assert len(ask(store, "bob", 99, 11.0, at_most=True).ids) == 14
    end(store)


CHECKS: tuple[Check, ...] = (
    rows_follow_the_order_of_arrival,
    ids_of_every_kind,
    an_id_that_comes_twice_is_refused,
    settings_come_back,
    nobody_elses_change_of_settings_is_lost,
    settings_known_after_the_samples,
    labels_come_with_their_samples,
    roles_are_reserved_among_all,
    roles_are_kept_apart,
    counts_add_up,
)
