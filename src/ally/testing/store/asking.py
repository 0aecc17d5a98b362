"""Asking: every sample goes to one annotator, once."""

from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ally.errors import AnswerError, IdError, InputError, PoolExhausted
from ally.store import NewAnswer, NewSample, Ranked, Store, StoredQuery
from ally.store.values import AskKind
from ally.testing.store.tools import Check, Create, ask, end, labels, make, refused


class _Twin:
    """The contract of asking and answering in plain dictionaries."""

    def __init__(self, n: int) -> None:
        self.samples = [f"s{row}" for row in range(n)]
        self.record: list[
            tuple[str, str, str | None, int | None]
        ] = []  # annotator, sample, value (None: undone later), query
        self.leases: dict[str, tuple[int, str, float]] = {}

    def standing(self, sample: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for annotator, of, value, _ in self.record:
            if of == sample and value is not None:
                found.pop(annotator, None)
                found[annotator] = value
        return found

    def free(self, now: float) -> set[str]:
        held = {sample for sample, (_, _, until) in self.leases.items() if until > now}
        return {sample for sample in self.samples if not self.standing(sample) and sample not in held}

    def answer(self, annotator: str, sample: str, value: str, query: int | None) -> None:
        before = [line for line in self.record if line[1] == sample and line[2] is not None]
        if not before or before[-1] != (annotator, sample, value, query):
            self.record.append((annotator, sample, value, query))
        lease = self.leases.get(sample)
        if lease and (lease[1] == annotator or (query is not None and lease[0] == query)):
            del self.leases[sample]

    def undo(self, annotator: str) -> bool:
        for place in range(len(self.record) - 1, -1, -1):
            if self.record[place][0] == annotator and self.record[place][2] is not None:
                self.record[place] = (*self.record[place][:2], None, self.record[place][3])
                return True
        return False


def no_sample_is_with_two_annotators(create: Create) -> None:
    store = make(create, 10)
    first, second = ask(store, "ann", 4, 10.0), ask(store, "bob", 4, 20.0)
    assert not set(first.ids) & set(second.ids)
    assert refused(PoolExhausted, store.ask, "eve", 3, 30.0, 100.0).startswith(
        "2 samples are free and 3 were requested"
    )
    assert set(ask(store, "eve", 6, 110.0).ids) > set(first.ids), "leases that ended at 110 are still held"
    end(store)


def the_same_key_gives_the_same_query(create: Create) -> None:
    store = make(create, 10)
    first = ask(store, "ann", 4, 10.0, key="k")
    again = ask(store, "ann", 4, 20.0, key="k")
    assert (again.number, again.ids) == (first.number, first.ids)
    assert store.count(115.0).leased == 4, "asking again did not renew the leases"
    store.answer("ann", 30.0, labels(first.ids[:1]), first.number)
    assert ask(store, "ann", 4, 40.0, key="k").ids == first.ids[1:]
    other = ask(store, "bob", 4, 50.0, key="k")
    assert other.number != first.number, "the key of one annotator was taken for another's"
    late = ask(store, "eve", 5, 200.0)
    assert set(late.ids) > set(first.ids[1:]) - set(other.ids)
    left = ask(store, "ann", 4, 210.0, key="k").ids
    assert left == [id for id in first.ids[1:] if id not in late.ids], "a sample leased to another meanwhile came again"
    assert (store.query(first.number).ids, again.total) == (first.ids, 4)
    refused(AnswerError, store.ask, "ann", 4, 220.0, 100.0, key="k", kind="random")
    end(store)


def fewer_than_asked_for(create: Create) -> None:
    store = make(create, 3)
    assert len(ask(store, "ann", 5, 1.0, at_most=True).ids) == 3
    queries = store.count(2.0).queries
    for at_most in (True, False):
        refused(PoolExhausted, store.ask, "bob", 1, 2.0, 100.0, at_most=at_most)
    assert store.count(2.0).queries == queries == 1
    for n in (0, -1, 2.5, True):
        refused(InputError, store.ask, "bob", n, 2.0, 100.0)
    bad: list[tuple[Any, Any, Any]] = [
        ("", 1.0, 1.0),
        ("ann", -1.0, 1.0),
        ("ann", math.nan, 1.0),
        ("ann", 1.0, 0.0),
        ("ann", 1.0, math.inf),
    ]
    for annotator, now, seconds in bad:
        refused(InputError, store.ask, annotator, 1, now, seconds)
    end(store)


def the_random_order_is_the_seeds(create: Create) -> None:
    orders = []
    for seed in (1, 1, 2):
        store = make(create, 50, seed)
        whole = ask(store, "ann", 20, 1.0).ids + ask(store, "bob", 30, 1.0, kind="random").ids
        assert sorted(whole) == sorted(f"s{row}" for row in range(50))
        orders.append(whole)
        end(store)
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0], key=lambda id: int(id[1:]))


def the_random_order_is_kept_where_much_is_answered(create: Create) -> None:
    """A store may remember how much of it is answered, but not for longer than it is true."""
    store = make(create, 700)
    order = ask(store, "ann", 700, 1.0, key="all").ids
    store.release(1)

    def next_ones(n: int, now: float) -> list[str]:
        query = ask(store, "ann", n, now)
        store.release(query.number)
        return query.ids

    store.answer("ann", 2.0, labels(order[:650]))
    assert next_ones(3, 3.0) == order[650:653]
    store.undo("ann", 4.0, 5)
    store.undo("ann", 4.0, 640)
    assert next_ones(3, 5.0) == [order[4], order[639], order[650]], "a sample that is free again is not asked about"
    store.answer("bob", 6.0, labels([order[4]]))
    assert next_ones(2, 7.0) == [order[639], order[650]]

    def fails() -> None:
        store.answer("bob", 8.0, labels(order[639:700]))
        refused(PoolExhausted, ask, store, "bob", 1, 8.0)
        raise KeyError("it is rolled back")

    refused(KeyError, store.together, fails)
    assert next_ones(2, 9.0) == [order[639], order[650]], "an answer that is not on record was counted"

    def refused_inside() -> None:
        refused(KeyError, store.together, fails)

    store.together(refused_inside)
    assert next_ones(2, 9.0) == [order[639], order[650]]
    store.answer("bob", 10.0, labels(order[639:700]))
    refused(PoolExhausted, ask, store, "ann", 1, 11.0)
    new = [f"t{number}" for number in range(50)]
    store.samples.add([NewSample(id) for id in new], 12.0)
    assert set(next_ones(50, 13.0)) == set(new), "samples that were added later are not asked about"
    end(store)


def the_ranking_comes_first(create: Create) -> None:
    store = make(create, 30)
    order = [7, 3, 11, 2, 29]
    store.answer("ann", 1.0, labels(["s3"]))
    ranked = [Ranked(row, 1.0 / (1 + place), {"dual": place}) for place, row in enumerate(order)]
    model = store.models.put(2.0, seen=1, labels=1, ranking=iter(ranked))
    first = ask(store, "ann", 2, 3.0)
    assert (first.ids, first.model) == (["s7", "s11"], model)
    assert [(asked.score, asked.why) for asked in first.samples] == [(1.0, {"dual": 0}), (1 / 3, {"dual": 2})]
    assert not set(ask(store, "bob", 3, 3.0, kind="random").ids) & set(first.ids)
    rest = ask(store, "eve", 24, 3.0)
    expected = [id for id in ("s2", "s29") if id in rest.ids]
    assert rest.ids[: len(expected)] == expected
    assert all(asked.score is None for asked in rest.samples[len(expected) :])
    assert list(store.models.ranking(model)) == ranked
    assert store.models.put(4.0, seen=1, labels=1, ranking=[Ranked(5, 0.5)]) == model + 1
    assert list(store.models.ranking(model)) == []
    assert store.query(first.number).samples == first.samples, "why a sample was asked about is lost with its ranking"
    end(store)


def a_query_of_several_kinds(create: Create) -> None:
    def store_of(ranking: list[int]) -> Store:
        store = create({}, [NewSample(f"s{row}", role="evaluate" if row % 5 == 0 else "pool") for row in range(40)], 7)
        store.models.put(1.0, seen=0, labels=0, ranking=[Ranked(row, 1.0, {"dual": row}) for row in ranking])
        return store

    store = store_of([])
    drawn = {kind: ask(store, kind, 99, 1.0, kind=kind, at_most=True).ids for kind in ("random", "evaluate")}
    end(store)
    ranking = [row for row in range(39, 19, -1) if row % 5]
    orders = {**drawn, "active": [f"s{row}" for row in ranking] + drawn["random"], "validate": []}

    def expected(n: int, kind: str, first: dict[str, int]) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for part, most in [*first.items(), (kind, n)]:
            fresh = [id for id in dict.fromkeys(orders[part]) if id not in found]
            found |= dict.fromkeys(fresh[: min(most, n - len(found))], part)
        return list(found.items())

    cases: list[tuple[int, Any, dict[Any, int]]] = [
        (10, "active", {"evaluate": 2, "random": 3}),
        (10, "random", {"active": 4}),
        (4, "active", {"random": 3, "evaluate": 3}),
        (12, "active", {"evaluate": 9, "validate": 2}),
        (32, "active", {"random": 20}),
        (6, "evaluate", {"active": 0, "evaluate": 1}),
    ]
    for n, kind, first in cases:
        store = store_of(ranking)
        query = ask(store, "ann", n, 2.0, key="k", kind=kind, first=first)
        found = [(asked.id, asked.kind) for asked in query.samples]
        assert found == expected(n, kind, first), (n, kind, first)
        assert all(
            (asked.why is not None) == (asked.kind == "active" and asked.row in ranking) for asked in query.samples
        )
        assert (query.kind, query.model) == (
            kind,
            1 if "active" in (kind, *(part for part, most in first.items() if most)) else None,
        )
        again = ask(store, "ann", n, 3.0, key="k", kind=kind)
        assert (again.number, again.samples) == (query.number, query.samples)
        assert store.query(query.number).samples == query.samples
        end(store)
    store = store_of(ranking)
    assert "34 samples are free and 35 were requested" in refused(
        PoolExhausted, store.ask, "ann", 35, 2.0, 9.0, first={"evaluate": 2}
    )
    assert store.count(2.0).queries == 0
    assert len(ask(store, "ann", 35, 2.0, first={"evaluate": 2}, at_most=True).ids) == 34
    for bad in ({"evaluate": -1}, {"evaluate": 1.5}, {"best": 1}):
        refused(InputError, store.ask, "bob", 1, 3.0, 9.0, first=bad)
        refused(InputError, store.ask, "bob", 1, 3.0, 9.0, first=lambda number, bad=bad: bad)
    end(store)


def what_comes_first_may_depend_on_the_number(create: Create) -> None:
    """Callers who ask at the same time get different query numbers: none is used twice."""
    store = make(create, 40)
    told: list[int] = []

    def first(number: int) -> dict[AskKind, int]:
        told.append(number)
        return {"random": number}

    def one(annotator: str) -> StoredQuery:
        return store.ask(annotator, 4, 1.0, 9.0, first=first)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one, ("ann", "bob", "cid", "dan")))
    assert sorted(told) == [1, 2, 3, 4]
    for query in found:
        kinds = [asked.kind for asked in query.samples]
        assert kinds.count("random") == query.number, (query.number, kinds)
    end(store)


def gone_samples_are_not_asked_about(create: Create) -> None:
    store = make(create, 6)
    assert store.samples.mark_gone(["s1", "s2"]) == 2
    assert store.samples.mark_gone(["s2", "s3"]) == 1
    assert set(ask(store, "ann", 3, 1.0, key="k").ids) == {"s0", "s4", "s5"}
    store.samples.mark_gone(["s4"])
    assert "s4" not in ask(store, "ann", 3, 2.0, key="k").ids
    assert store.samples.mark_gone(["s1"], gone=False) == 1
    assert ask(store, "ann", 1, 3.0).ids == ["s1"]
    assert store.answer("ann", 4.0, labels(["s2"])).numbers == (1,), "an answer about a sample that is gone was refused"
    assert [sample.id for sample in store.samples.all() if sample.gone] == ["s2", "s3", "s4"]
    refused(IdError, store.samples.mark_gone, ["s0", "nobody"])
    end(store)


def several_opinions(create: Create) -> None:
    store = make(create, 3)
    first = ask(store, "ann", 3, 1.0, opinions=2)
    store.answer("ann", 2.0, [*labels(first.ids[:2]), NewAnswer(first.ids[2], kind="skip")], first.number)
    refused(PoolExhausted, store.ask, "ann", 1, 3.0, 9.0, opinions=2)
    second = ask(store, "bob", 9, 3.0, opinions=2, at_most=True)
    assert set(second.ids) == set(first.ids[:2])
    assert set(store.waiting(second.number, 2)) == set(second.ids), "what somebody else has answered is not waited for"
    store.answer("bob", 4.0, labels(second.ids[:1], "dog"), second.number)
    assert store.waiting(second.number, 2) == second.ids[1:]
    store.answer("bob", 4.0, labels(second.ids[1:], "dog"), second.number)
    assert store.waiting(second.number, 2) == store.waiting(first.number, 2) == []
    refused(PoolExhausted, store.ask, "eve", 1, 5.0, 9.0, opinions=2)
    assert len(ask(store, "eve", 2, 5.0, opinions=3).ids) == 2
    end(store)


def release_gives_samples_back(create: Create) -> None:
    store = make(create, 5)
    query = ask(store, "ann", 5, 1.0)
    store.answer("ann", 2.0, labels(query.ids[:2]), query.number)
    assert store.release(query.number) == 3
    assert store.release(query.number) == 0
    again = ask(store, "bob", 3, 3.0)
    assert set(again.ids) == set(query.ids[2:])
    refused(AnswerError, store.release, 99)
    held = again.number
    _kept, *others = query.ids[2:]
    assert store.release(held, others) == 2
    assert set(ask(store, "eve", 2, 4.0).ids) == set(others), "what was not named is still kept"
    refused(IdError, store.release, held, ["nobody"])
    refused(AnswerError, store.query, 99)
    end(store)


def what_a_query_waits_for(create: Create) -> None:
    store = make(create, 12)
    assert store.asked_as() == {}
    first = ask(store, "ann", 6, 1.0, 5.0)
    store.answer("ann", 2.0, labels(first.ids[1:3]), first.number)
    store.answer("bob", 3.0, [NewAnswer(first.ids[4], kind="skip")])
    store.samples.mark_gone([first.ids[0]])
    assert store.waiting(first.number) == [first.ids[3], first.ids[5]]
    store.undo("ann", 4.0)
    assert store.waiting(first.number) == [first.ids[2], first.ids[3], first.ids[5]]
    model = store.models.put(
        5.0, seen=0, labels=0, ranking=[Ranked(row, 1.0) for row in store.samples.rows(first.ids[2:4])]
    )
    fresh = next(id for id in store.samples.ids(range(12)) if id not in first.ids)
    store.models.put(
        6.0, seen=0, labels=0, ranking=[Ranked(row, 1.0) for row in store.samples.rows([first.ids[3], fresh])]
    )
    second = ask(store, "eve", 3, 20.0, first={"active": 2}, kind="random")
    assert {first.ids[3], fresh} < set(second.ids)
    store.answer("eve", 21.0, labels(second.ids), second.number)
    assert store.waiting(second.number) == []
    expected: dict[int, tuple[str, int, int | None]] = {asked.row: ("active", 1, None) for asked in first.samples}
    expected |= {asked.row: (asked.kind, 2, model + 1) for asked in second.samples if asked.row not in expected}
    assert store.asked_as() == expected
    assert store.count(20.0).queries == 2
    refused(AnswerError, store.waiting, 3)
    end(store)


def the_same_key_at_once(create: Create) -> None:
    store = make(create, 80)
    with ThreadPoolExecutor(8) as threads:
        for turn in range(5):
            queries = list(threads.map(lambda _, turn=turn: ask(store, "ann", 3, 1.0, key=f"k{turn}"), range(8)))
            assert len({query.number for query in queries}) == 1, "one key made two queries"
            query = queries[0]
            receipts = list(
                threads.map(lambda _, q=query: store.answer("ann", 2.0, labels(q.ids), q.number, key=q.key), range(8))
            )
            assert len({receipt.numbers for receipt in receipts}) == 1, "one key made two receipts"
            assert sum(not receipt.repeated for receipt in receipts) == 1
    assert (store.count(3.0).answers, store.count(3.0).queries) == (15, 5)
    end(store)


def a_random_history_against_its_twin(create: Create) -> None:
    rng = random.Random(5)
    store, twin = make(create, 25), _Twin(25)
    queries: list[StoredQuery] = []
    now = 0.0
    for _ in range(100):
        now += rng.random() * 4
        annotator = rng.choice(["ann", "bob", "eve"])
        step = rng.random()
        if step < 0.4:
            free, n = twin.free(now), rng.randint(1, 4)
            if len(free) < n:
                assert f"{len(free)} samples are free" in refused(PoolExhausted, store.ask, annotator, n, now, 20.0)
                continue
            queries.append(ask(store, annotator, n, now, 20.0))
            assert set(queries[-1].ids) <= free, "a sample that is not free was handed out"
            twin.leases |= dict.fromkeys(queries[-1].ids, (queries[-1].number, annotator, now + 20.0))
        elif step < 0.85 and queries:
            query = rng.choice(queries)
            ids = rng.sample(query.ids, rng.randint(1, len(query.ids)))
            value = rng.choice(["cat", "dog"])
            store.answer(annotator, now, labels(ids, value), query.number)
            for id in ids:
                twin.answer(annotator, id, value, query.number)
        elif twin.undo(annotator):
            store.undo(annotator, now)
        expected = {
            int(sample[1:]): list(twin.standing(sample).values())[-1]
            for sample in twin.samples
            if twin.standing(sample)
        }
        assert {row: label.value for row, label in store.answers.labels().items()} == expected
        assert store.count(now).free == len(twin.free(now))
    end(store)


CHECKS: tuple[Check, ...] = (
    no_sample_is_with_two_annotators,
    the_same_key_gives_the_same_query,
    fewer_than_asked_for,
    the_random_order_is_the_seeds,
    the_random_order_is_kept_where_much_is_answered,
    the_ranking_comes_first,
    a_query_of_several_kinds,
    what_comes_first_may_depend_on_the_number,
    gone_samples_are_not_asked_about,
    several_opinions,
    release_gives_samples_back,
    what_a_query_waits_for,
    the_same_key_at_once,
    a_random_history_against_its_twin,
)
