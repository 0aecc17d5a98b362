"""The conformance suite of stores: the contract of `ally.store.base`, as checks.

    from ally.testing.store import check_store
    check_store(lambda settings, samples, seed: MyStore(settings, samples, seed))

Each check makes a store of its own and closes it.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from ally.errors import AllyError, AnswerError, IdError, InputError, PoolExhausted
from ally.store import Measure, NewAnswer, NewSample, Ranked, Store, StoredQuery
from ally.store import open as open_store

Create = Callable[[dict[str, Any], Iterable[NewSample], int], Store]
Check = Callable[[Create], None]


def _make(create: Create, n: int = 10, seed: int = 0) -> Store:
    return create({}, (NewSample(f"s{row}") for row in range(n)), seed)


def _ask(store: Store, annotator: str, n: int, now: float, seconds: float = 100.0, **more: Any) -> StoredQuery:
    query = store.ask(annotator, n, now, seconds, **more)
    assert len(set(query.ids)) == len(query.ids), "a sample comes twice in one query"
    assert query.until == now + seconds
    return query


def _labels(ids: Iterable[str], value: Any = "cat") -> list[NewAnswer]:
    return [NewAnswer(id, value) for id in ids]


def _refused(error: type[AllyError], work: Callable[..., Any], *args: Any, **more: Any) -> str:
    """What the error of a call says."""
    try:
        work(*args, **more)
    except error as found:
        return str(found)
    raise AssertionError(f"{error.__name__} was expected, and nothing was raised")


def _end(store: Store) -> None:
    assert store.check() == []
    store.close()


def rows_follow_the_order_of_arrival(create: Create) -> None:
    store = _make(create, 3)
    assert store.add_samples([NewSample("s1"), NewSample("late", hash="abc"), NewSample("late")]) == 1
    assert [(sample.row, sample.id) for sample in store.samples()] == [(0, "s0"), (1, "s1"), (2, "s2"), (3, "late")]
    assert [sample.hash for sample in store.samples(after_row=2)] == ["abc"]
    assert store.rows(["late", "s0"]) == [3, 0]
    assert store.ids([1, 3, 1]) == ["s1", "late", "s1"]
    assert "'nobody'" in _refused(IdError, store.rows, ["s0", "nobody"])
    _refused(IdError, store.ids, [4])
    _end(store)


def ids_of_every_kind(create: Create) -> None:
    odd = ["a b/ü.jpg", "'; DROP TABLE samples; --", "%s", "🐈", "..", "x" * 4096, "A", "a", "a ", "1", "01", "null"]
    store = create({}, map(NewSample, odd), 0)
    assert store.ids(range(len(odd))) == odd
    assert store.rows(odd) == list(range(len(odd)))
    query = _ask(store, "Zoë", len(odd), 1.0)
    store.answer("Zoë", 2.0, _labels(query.ids), query.number)
    assert {answer.sample for answer in store.answers()} == set(odd)
    bad: list[Any] = ["", "nul\x00", "broken\udcff", "x" * 4097, 7, None]
    for id in bad:
        _refused(IdError, store.add_samples, [NewSample("fine"), NewSample(id)])
    assert len(list(store.samples())) == len(odd)
    _end(store)


def an_id_that_comes_twice_is_refused(create: Create) -> None:
    ids = [f"s{row}" for row in range(6000)]
    for twice in ([*ids[:5], "s3"], [*ids, "s17"]):
        assert twice[-1] in _refused(IdError, create, {}, map(NewSample, twice), 0)


def settings_come_back(create: Create) -> None:
    settings: dict[str, Any] = {"classes": ["cat", "dög"], "eps": 0.2, "nested": {"none": None, "n": [1, 2]}}
    store = create(settings, [], 0)
    assert store.settings == settings
    store.change_settings({"classes": []})
    assert store.settings == {"classes": []}
    _refused(InputError, store.change_settings, {"bad": math.nan})
    assert store.settings == {"classes": []}
    _end(store)


def no_sample_is_with_two_annotators(create: Create) -> None:
    store = _make(create, 10)
    first, second = _ask(store, "ann", 4, 10.0), _ask(store, "bob", 4, 20.0)
    assert not set(first.ids) & set(second.ids)
    assert _refused(PoolExhausted, store.ask, "eve", 3, 30.0, 100.0).startswith("2 samples are free and 3 were requested")
    assert set(_ask(store, "eve", 6, 110.0).ids) > set(first.ids), "leases that ended at 110 are still held"
    _end(store)


def the_same_key_gives_the_same_query(create: Create) -> None:
    store = _make(create, 10)
    first = _ask(store, "ann", 4, 10.0, key="k")
    again = _ask(store, "ann", 4, 20.0, key="k")
    assert (again.number, again.ids) == (first.number, first.ids)
    assert store.count(115.0).leased == 4, "asking again did not renew the leases"
    store.answer("ann", 30.0, _labels(first.ids[:1]), first.number)
    assert _ask(store, "ann", 4, 40.0, key="k").ids == first.ids[1:]
    other = _ask(store, "bob", 4, 50.0, key="k")
    assert other.number != first.number, "the key of one annotator was taken for another's"
    late = _ask(store, "eve", 5, 200.0)
    assert set(late.ids) > set(first.ids[1:]) - set(other.ids)
    left = _ask(store, "ann", 4, 210.0, key="k").ids
    assert left == [id for id in first.ids[1:] if id not in late.ids], "a sample leased to another meanwhile came again"
    assert (store.query(first.number).ids, again.total) == (first.ids, 4)
    _refused(AnswerError, store.ask, "ann", 4, 220.0, 100.0, key="k", kind="random")
    _end(store)


def fewer_than_asked_for(create: Create) -> None:
    store = _make(create, 3)
    assert len(_ask(store, "ann", 5, 1.0, at_most=True).ids) == 3
    queries = store.count(2.0).queries
    for at_most in (True, False):
        _refused(PoolExhausted, store.ask, "bob", 1, 2.0, 100.0, at_most=at_most)
    assert store.count(2.0).queries == queries == 1
    for n in (0, -1, 2.5, True):
        _refused(InputError, store.ask, "bob", n, 2.0, 100.0)
    bad: list[tuple[Any, Any, Any]] = [
        ("", 1.0, 1.0),
        ("ann", -1.0, 1.0),
        ("ann", math.nan, 1.0),
        ("ann", 1.0, 0.0),
        ("ann", 1.0, math.inf),
    ]
    for annotator, now, seconds in bad:
        _refused(InputError, store.ask, annotator, 1, now, seconds)
    _end(store)


def the_random_order_is_the_seeds(create: Create) -> None:
    orders = []
    for seed in (1, 1, 2):
        store = _make(create, 50, seed)
        whole = _ask(store, "ann", 20, 1.0).ids + _ask(store, "bob", 30, 1.0, kind="random").ids
        assert sorted(whole) == sorted(f"s{row}" for row in range(50))
        orders.append(whole)
        _end(store)
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0], key=lambda id: int(id[1:]))


def the_ranking_comes_first(create: Create) -> None:
    store = _make(create, 30)
    order = [7, 3, 11, 2, 29]
    store.answer("ann", 1.0, _labels(["s3"]))
    ranked = [Ranked(row, 1.0 / (1 + place), {"dual": place}) for place, row in enumerate(order)]
    model = store.put_model(2.0, seen=1, labels=1, ranking=iter(ranked))
    first = _ask(store, "ann", 2, 3.0)
    assert (first.ids, first.model) == (["s7", "s11"], model)
    assert [(asked.score, asked.why) for asked in first.samples] == [(1.0, {"dual": 0}), (1 / 3, {"dual": 2})]
    assert not set(_ask(store, "bob", 3, 3.0, kind="random").ids) & set(first.ids)
    rest = _ask(store, "eve", 24, 3.0)
    expected = [id for id in ("s2", "s29") if id in rest.ids]
    assert rest.ids[: len(expected)] == expected
    assert all(asked.score is None for asked in rest.samples[len(expected) :])
    assert list(store.ranking(model)) == ranked
    assert store.put_model(4.0, seen=1, labels=1, ranking=[Ranked(5, 0.5)]) == model + 1
    assert list(store.ranking(model)) == []
    assert store.query(first.number).samples == first.samples, "why a sample was asked about is lost with its ranking"
    _end(store)


def roles_are_kept_apart(create: Create) -> None:
    new = [NewSample(f"s{row}", role="evaluate" if row < 5 else "pool") for row in range(20)]
    store = create({}, new, 0)
    reserved = store.reserve("validate", 4, 1.0)
    _refused(PoolExhausted, store.reserve, "validate", 12, 1.0)
    _refused(InputError, store.reserve, "pool", 1, 1.0)
    store.put_model(1.0, seen=0, labels=0, ranking=[Ranked(row, 1.0) for row in range(20)])
    pool = _ask(store, "ann", 11, 2.0).ids
    assert set(pool) == {f"s{row}" for row in range(5, 20)} - set(reserved)
    assert {sample.id for sample in store.samples("validate")} == set(reserved)
    assert set(_ask(store, "ann", 5, 2.0, kind="evaluate").ids) == {f"s{row}" for row in range(5)}
    assert set(_ask(store, "ann", 4, 2.0, kind="validate").ids) == set(reserved)
    assert store.count(3.0).roles["validate"].leased == 4
    _end(store)


def gone_samples_are_not_asked_about(create: Create) -> None:
    store = _make(create, 6)
    assert store.mark_gone(["s1", "s2"]) == 2
    assert store.mark_gone(["s2", "s3"]) == 1
    assert set(_ask(store, "ann", 3, 1.0, key="k").ids) == {"s0", "s4", "s5"}
    store.mark_gone(["s4"])
    assert "s4" not in _ask(store, "ann", 3, 2.0, key="k").ids
    assert store.mark_back(["s1"]) == 1
    assert _ask(store, "ann", 1, 3.0).ids == ["s1"]
    assert store.answer("ann", 4.0, _labels(["s2"])).numbers == (1,), "an answer about a sample that is gone was refused"
    assert [sample.id for sample in store.samples() if sample.gone] == ["s2", "s3", "s4"]
    _refused(IdError, store.mark_gone, ["s0", "nobody"])
    _end(store)


def every_answer_or_none(create: Create) -> None:
    store = _make(create, 6)
    query = _ask(store, "ann", 3, 1.0)
    good = NewAnswer(query.ids[0], "cat")
    outside = next(f"s{row}" for row in range(6) if f"s{row}" not in query.ids)
    cases: list[tuple[type[AllyError], Any, int | None]] = [
        (IdError, NewAnswer("nobody", "cat"), None),
        (AnswerError, NewAnswer(outside, "cat"), query.number),
        (AnswerError, good, query.number),
        (AnswerError, NewAnswer(query.ids[1]), query.number),
        (AnswerError, NewAnswer(query.ids[1], math.nan), query.number),
        (AnswerError, NewAnswer(query.ids[1], {1, 2}), query.number),
        (AnswerError, NewAnswer(query.ids[1], "cat", "skip"), query.number),
        (AnswerError, NewAnswer(query.ids[1], "cat", "undo"), query.number),  # type: ignore[arg-type]
        (AnswerError, NewAnswer(query.ids[1], "cat"), query.number + 1),
    ]
    for error, bad, number in cases:
        _refused(error, store.answer, "ann", 2.0, [good, bad], number, key="k")
    _refused(AnswerError, store.answer, "ann", 2.0, [], query.number)
    _refused(InputError, store.answer, "", 2.0, [good], query.number)
    assert list(store.answers()) == []
    assert store.count(2.0).leased == 3
    assert store.answer("ann", 2.0, [good], query.number, key="k").numbers == (1,)
    _end(store)


def the_same_key_gives_the_same_receipt(create: Create) -> None:
    store = _make(create, 6)
    query = _ask(store, "ann", 3, 1.0)
    first = store.answer("ann", 2.0, _labels(query.ids), query.number, key="k")
    changed = store.answer("ann", 3.0, _labels(query.ids[:1], "dog"), query.number, key="l")
    again = store.answer("ann", 4.0, _labels(query.ids), query.number, key="k")
    assert first == again
    assert (first.repeated, again.repeated) == (False, True)
    assert (first.numbers, changed.numbers) == ((1, 2, 3), (4,))
    assert store.labels()[store.rows(query.ids[:1])[0]].value == "dog", "a call that came again undid a later one"
    assert "other answers" in _refused(AnswerError, store.answer, "ann", 5.0, _labels(query.ids, "dog"), query.number, key="k")
    assert store.answer("bob", 6.0, _labels(query.ids), query.number, key="k").numbers == (5, 6, 7)
    _end(store)


def equal_answers_change_nothing(create: Create) -> None:
    store = _make(create, 6)
    query = _ask(store, "ann", 2, 1.0)
    first = store.answer("ann", 2.0, _labels(query.ids), query.number)
    assert store.answer("ann", 3.0, _labels(query.ids), query.number) == first
    assert store.answer("ann", 3.0, _labels(query.ids), query.number, key="new key") == first
    assert store.answer("ann", 4.0, _labels(query.ids[:1], "dog"), query.number).numbers == (3,)
    assert store.answer("ann", 5.0, _labels(query.ids), query.number).numbers == (4, 2), "cat, dog, cat is three answers"
    assert store.answer("ann", 6.0, _labels(["s0", "s1", "s2"], "owl")) == store.answer("ann", 7.0, _labels(["s0", "s1", "s2"], "owl"))
    assert store.count(8.0).answers == 7
    _end(store)


def late_answers_count(create: Create) -> None:
    store = _make(create, 2)
    late = _ask(store, "ann", 2, 1.0, 10.0)
    now_with = _ask(store, "bob", 2, 20.0, 10.0)
    store.answer("ann", 21.0, _labels(late.ids, "cat"), late.number)
    assert store.count(22.0).labelled == 2
    store.answer("bob", 23.0, _labels(now_with.ids, "dog"), now_with.number)
    assert [(label.value, label.answers, label.disagree) for label in store.labels().values()] == [("dog", 2, True)] * 2
    _end(store)


def values_of_every_kind(create: Create) -> None:
    values: list[Any] = ["cat", "", "ü\x00🐈\udcff", 0, -7, 2**62, 0.1, 1e300, True, False, [1, [2]], {"a": None, "b": {"c": []}}]
    store = _make(create, len(values))
    store.answer("ann", 1.0, [NewAnswer(f"s{row}", value) for row, value in enumerate(values)])
    found = [label.value for label in store.labels().values()]
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]
    _end(store)


def undo_takes_back_one_answer(create: Create) -> None:
    store = _make(create, 4)
    store.answer("ann", 1.0, _labels(["s0"], "cat"))
    store.answer("ann", 2.0, _labels(["s0"], "dog"))
    store.answer("bob", 3.0, _labels(["s1"], "owl"))
    receipt, taken = store.undo("ann", 4.0)
    assert (taken.number, taken.value, receipt.numbers) == (2, "dog", (4,))
    assert store.labels()[0].value == "cat"
    assert store.undo("ann", 5.0, 2)[0] == receipt, "an answer was undone twice"
    _refused(AnswerError, store.undo, "ann", 6.0, 3)
    _refused(AnswerError, store.undo, "ann", 6.0, 4)
    _refused(AnswerError, store.undo, "ann", 6.0, 9)
    first = store.undo("ann", 7.0, key="k")
    assert store.undo("ann", 8.0, key="k") == first
    assert 0 not in store.labels()
    _refused(AnswerError, store.undo, "ann", 9.0)
    assert "s0" in _ask(store, "eve", 3, 10.0).ids, "a sample without an answer that counts is not asked about"
    assert [(answer.number, answer.kind, answer.undoes) for answer in store.answers(since=3)] == [(4, "undo", 2), (5, "undo", 1)]
    _end(store)


def skips_close_a_sample(create: Create) -> None:
    store = _make(create, 3)
    store.answer("ann", 1.0, [NewAnswer("s1", kind="skip")])
    assert set(_ask(store, "bob", 5, 2.0, at_most=True).ids) == {"s0", "s2"}
    assert (store.skips(), store.labels(), store.count(2.0).skipped) == ({1}, {}, 1)
    store.answer("bob", 3.0, _labels(["s1"]))
    assert (store.skips(), set(store.labels())) == (set(), {1})
    store.answer("ann", 4.0, [NewAnswer("s1", kind="skip")])
    assert store.skips("last") == set(), "the answer of ann stood already"
    store.undo("bob", 5.0)
    assert store.skips("last") == {1}
    _end(store)


def labels_by_either_policy(create: Create) -> None:
    store = _make(create, 5)
    said = [
        ("ann", "s0", "cat"),
        ("bob", "s0", "dog"),
        ("eve", "s0", "cat"),
        ("ann", "s1", "cat"),
        ("bob", "s1", "dog"),
        ("eve", "s2", "owl"),
    ]
    for at, (annotator, sample, value) in enumerate(said, 1):
        store.answer(annotator, float(at), [NewAnswer(sample, value)])
    store.answer("dan", 9.0, [NewAnswer("s0", "dog")])
    store.answer("ann", 10.0, [NewAnswer("s0", "dog")])
    store.answer("ann", 11.0, [NewAnswer("s2", kind="skip")])
    last, majority = store.labels("last"), store.labels("majority")
    assert {row: label.value for row, label in last.items()} == {0: "dog", 1: "dog"}
    assert {row: label.value for row, label in majority.items()} == {0: "dog", 1: "dog", 2: "owl"}
    assert (last[0].answers, last[0].disagree, last[0].annotator, last[0].at) == (4, True, "ann", 10.0)
    assert (majority[0].annotator, majority[2].disagree) == ("ann", False)
    assert (store.skips("last"), store.skips("majority")) == ({2}, set())
    _refused(InputError, store.labels, "first")
    _end(store)


def several_opinions(create: Create) -> None:
    store = _make(create, 3)
    first = _ask(store, "ann", 3, 1.0, opinions=2)
    store.answer("ann", 2.0, [*_labels(first.ids[:2]), NewAnswer(first.ids[2], kind="skip")], first.number)
    _refused(PoolExhausted, store.ask, "ann", 1, 3.0, 9.0, opinions=2)
    second = _ask(store, "bob", 9, 3.0, opinions=2, at_most=True)
    assert set(second.ids) == set(first.ids[:2])
    store.answer("bob", 4.0, _labels(second.ids, "dog"), second.number)
    _refused(PoolExhausted, store.ask, "eve", 1, 5.0, 9.0, opinions=2)
    assert len(_ask(store, "eve", 2, 5.0, opinions=3).ids) == 2
    _end(store)


def counts_add_up(create: Create) -> None:
    store = _make(create, 20)
    query = _ask(store, "ann", 5, 1.0, 10.0)
    store.answer("ann", 2.0, [*_labels(query.ids[:2]), NewAnswer(query.ids[2], kind="skip")], query.number)
    gone = [f"s{row}" for row in range(20) if f"s{row}" not in query.ids][:3]
    store.mark_gone([*gone, query.ids[0]])
    found = store.count(3.0)
    assert (found.samples, found.labelled, found.skipped, found.leased, found.gone, found.free) == (20, 2, 1, 2, 3, 12)
    assert (found.classes, found.answers, found.queries) == ({'"cat"': 2}, 3, 1)
    assert (store.count(11.0).leased, store.count(11.0).free) == (0, 14)
    assert len(_ask(store, "bob", 99, 11.0, at_most=True).ids) == 14
    _end(store)


def release_gives_samples_back(create: Create) -> None:
    store = _make(create, 5)
    query = _ask(store, "ann", 5, 1.0)
    store.answer("ann", 2.0, _labels(query.ids[:2]), query.number)
    assert store.release(query.number) == 3
    assert store.release(query.number) == 0
    assert set(_ask(store, "bob", 3, 3.0).ids) == set(query.ids[2:])
    _refused(AnswerError, store.release, 99)
    _refused(AnswerError, store.query, 99)
    _end(store)


def a_model_serves_when_it_is_whole(create: Create) -> None:
    store = _make(create, 30)
    assert store.newest_model() is None
    first = store.put_model(1.0, seen=0, labels=0, weights=b"\x00one", report={"loss": 0.5}, ranking=[Ranked(9, 1.0)])

    def interrupted() -> Iterator[Ranked]:
        yield Ranked(3, 1.0)
        assert _ask(store, "ann", 1, 2.0, 1.0).ids == ["s9"], "a model served before it was whole"
        raise InterruptedError

    with suppress(InterruptedError):
        store.put_model(2.0, seen=0, labels=0, ranking=interrupted())
    serving = store.newest_model()
    assert serving is not None
    assert (serving.number, serving.state, serving.report) == (first, "good", {"loss": 0.5})
    assert _ask(store, "bob", 1, 4.0).ids == ["s9"]
    store.put_failure(5.0, seen=0, labels=0, report={"error": "killed"})
    assert [model.state for model in store.models()] == ["good", "failed", "failed"]
    assert store.newest_model() == serving
    for number in range(4):
        last = store.put_model(6.0, seen=0, labels=0, weights=bytes([number]), keep_weights=2)
    assert (store.weights(last), store.weights(last - 1), store.weights(last - 2), store.weights(first)) == (b"\x03", b"\x02", None, None)
    _refused(InputError, store.put_model, 7.0, seen=0, labels=0, ranking=[Ranked(1, math.nan)])
    _refused(InputError, store.put_model, 7.0, seen=0, labels=0, measures=[Measure("accuracy", math.inf)])
    newest = store.newest_model()
    assert newest is not None
    assert newest.number == last
    _end(store)


def figures_and_events_come_back(create: Create) -> None:
    store = _make(create, 2)
    figures = [Measure("accuracy", 0.5, 0.4, 0.6, 100), Measure("kappa", 0.9)]
    first = store.put_model(1.0, seen=0, labels=0, measures=figures)
    second = store.put_model(2.0, seen=0, labels=0)
    store.put_measures(second, [Measure("accuracy", 0.6)])
    store.put_measures(second, [Measure("accuracy", 0.7)])
    assert store.measures("accuracy") == [(first, figures[0]), (second, Measure("accuracy", 0.7))]
    assert len(store.measures()) == 3
    _refused(InputError, store.put_measures, 99, figures)
    assert [store.log(float(at), "retrain", {"at": at}) for at in range(3)] == [1, 2, 3]
    assert [(event.number, event.at, event.kind, event.detail) for event in store.events(since=2)] == [(3, 2.0, "retrain", {"at": 2})]
    _end(store)


def threads_share_a_store(create: Create) -> None:
    store = _make(create, 80)

    def work(person: int) -> list[str]:
        found: list[str] = []
        for turn in range(5):
            query = _ask(store, f"p{person}", 2, 1.0 + turn, key=f"k{turn}")
            store.answer(f"p{person}", 2.0 + turn, _labels(query.ids), query.number, key=f"k{turn}")
            found += query.ids
        return found

    with ThreadPoolExecutor(8) as threads:
        lists = list(threads.map(work, range(8)))
    every = [id for part in lists for id in part]
    assert len(every) == len(set(every)) == 80
    assert [answer.number for answer in store.answers()] == list(range(1, 81))
    _end(store)


def the_same_key_at_once(create: Create) -> None:
    store = _make(create, 80)
    with ThreadPoolExecutor(8) as threads:
        for turn in range(5):
            queries = list(threads.map(lambda _, turn=turn: _ask(store, "ann", 3, 1.0, key=f"k{turn}"), range(8)))
            assert len({query.number for query in queries}) == 1, "one key made two queries"
            query = queries[0]
            receipts = list(threads.map(lambda _, q=query: store.answer("ann", 2.0, _labels(q.ids), q.number, key=q.key), range(8)))
            assert len({receipt.numbers for receipt in receipts}) == 1, "one key made two receipts"
            assert sum(not receipt.repeated for receipt in receipts) == 1
    assert (store.count(3.0).answers, store.count(3.0).queries) == (15, 5)
    _end(store)


def numbers_out_of_range(create: Create) -> None:
    store = _make(create, 3)
    for number in (-1, 99, 2**63, 2**70):
        _refused(AllyError, store.ids, [number])
        _refused(AllyError, store.query, number)
        _refused(AllyError, store.release, number)
        _refused(AllyError, store.undo, "ann", 1.0, number)
        _refused(AllyError, store.answer, "ann", 1.0, _labels(["s0"]), number)
        _refused(AllyError, store.put_model, 1.0, seen=0, labels=0, ranking=[Ranked(number, 1.0)])
    assert (store.count(2.0).answers, store.newest_model()) == (0, None)
    _end(store)


def a_closed_store_says_so(create: Create) -> None:
    store = _make(create, 3)
    store.close()
    store.close()
    assert "closed" in _refused(AllyError, store.ask, "ann", 1, 1.0, 1.0)
    assert "closed" in _refused(AllyError, store.labels)


def a_backup_is_the_same_campaign(create: Create) -> None:
    store = create({"classes": ["cat"]}, (NewSample(f"s{row}", f"h{row}") for row in range(20)), 3)
    query = _ask(store, "ann", 6, 1.0, key="k")
    store.answer("ann", 2.0, _labels(query.ids[:3]), query.number, key="a")
    store.undo("ann", 3.0)
    store.put_model(4.0, seen=4, labels=2, weights=b"weights", ranking=[Ranked(row, 1.0) for row in range(9)], measures=[Measure("m", 1.0)])
    store.log(5.0, "retrain")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.db"
        assert store.backup(path) == path
        _refused(AllyError, store.backup, path)
        assert [other.name for other in Path(folder).iterdir()] == ["copy.db"]
        with open_store(path) as copy:
            assert copy.check() == []
            assert copy.settings == store.settings
            assert list(copy.answers()) == list(store.answers())
            assert list(copy.samples()) == list(store.samples())
            assert list(copy.events()) == list(store.events())
            assert (copy.labels(), copy.models(), copy.measures()) == (store.labels(), store.models(), store.measures())
            assert (copy.weights(1), list(copy.ranking(1))) == (b"weights", list(store.ranking(1)))
            assert copy.ask("ann", 6, 6.0, 100.0, key="k") == store.ask("ann", 6, 6.0, 100.0, key="k")
            assert copy.ask("bob", 6, 7.0, 100.0) == store.ask("bob", 6, 7.0, 100.0)
    _end(store)


class _Twin:
    """The contract of asking and answering in plain dictionaries."""

    def __init__(self, n: int) -> None:
        self.samples = [f"s{row}" for row in range(n)]
        self.record: list[tuple[str, str, str | None, int | None]] = []  # annotator, sample, value (None: undone later), query
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
        before = [line for line in self.record if line[:2] == (annotator, sample) and line[2] is not None]
        if not before or before[-1][2:] != (value, query):
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


def a_random_history_against_its_twin(create: Create) -> None:
    rng = random.Random(5)
    store, twin = _make(create, 25), _Twin(25)
    queries: list[StoredQuery] = []
    now = 0.0
    for _ in range(150):
        now += rng.random() * 4
        annotator = rng.choice(["ann", "bob", "eve"])
        step = rng.random()
        if step < 0.4:
            free, n = twin.free(now), rng.randint(1, 4)
            if len(free) < n:
                assert f"{len(free)} samples are free" in _refused(PoolExhausted, store.ask, annotator, n, now, 20.0)
                continue
            queries.append(_ask(store, annotator, n, now, 20.0))
            assert set(queries[-1].ids) <= free, "a sample that is not free was handed out"
            twin.leases |= dict.fromkeys(queries[-1].ids, (queries[-1].number, annotator, now + 20.0))
        elif step < 0.85 and queries:
            query = rng.choice(queries)
            ids = rng.sample(query.ids, rng.randint(1, len(query.ids)))
            value = rng.choice(["cat", "dog"])
            store.answer(annotator, now, _labels(ids, value), query.number)
            for id in ids:
                twin.answer(annotator, id, value, query.number)
        elif twin.undo(annotator):
            store.undo(annotator, now)
        expected = {int(sample[1:]): list(twin.standing(sample).values())[-1] for sample in twin.samples if twin.standing(sample)}
        assert {row: label.value for row, label in store.labels().items()} == expected
        assert store.count(now).free == len(twin.free(now))
    _end(store)


CHECKS: tuple[Check, ...] = (
    rows_follow_the_order_of_arrival,
    ids_of_every_kind,
    an_id_that_comes_twice_is_refused,
    settings_come_back,
    no_sample_is_with_two_annotators,
    the_same_key_gives_the_same_query,
    fewer_than_asked_for,
    the_random_order_is_the_seeds,
    the_ranking_comes_first,
    roles_are_kept_apart,
    gone_samples_are_not_asked_about,
    every_answer_or_none,
    the_same_key_gives_the_same_receipt,
    equal_answers_change_nothing,
    late_answers_count,
    values_of_every_kind,
    undo_takes_back_one_answer,
    skips_close_a_sample,
    labels_by_either_policy,
    several_opinions,
    counts_add_up,
    release_gives_samples_back,
    a_model_serves_when_it_is_whole,
    figures_and_events_come_back,
    threads_share_a_store,
    the_same_key_at_once,
    numbers_out_of_range,
    a_closed_store_says_so,
    a_backup_is_the_same_campaign,
    a_random_history_against_its_twin,
)


def check_store(create: Create) -> None:
    """Runs every check; raises AssertionError, or whatever the store raised, at the first that fails."""
    for check in CHECKS:
        check(create)
