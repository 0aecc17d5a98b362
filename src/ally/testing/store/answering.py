"""Answers: recorded all or nothing, exactly once, and undone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ally.errors import AllyError, AnswerConflict, AnswerError, IdError, InputError, PoolExhausted
from ally.store import AnswerCall, Label, NewAnswer, Recorded
from ally.testing.store.tools import Check, Create, ask, end, labels, make, refused, skips


def every_answer_or_none(create: Create) -> None:
    store = make(create, 6)
    query = ask(store, "ann", 3, 1.0)
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
        refused(error, store.answer, "ann", 2.0, [good, bad], number, key="k")
    refused(AnswerError, store.answer, "ann", 2.0, [], query.number)
    refused(InputError, store.answer, "", 2.0, [good], query.number)
    assert list(store.answers.all()) == []
    assert store.count(2.0).leased == 3
    assert store.answer("ann", 2.0, [good], query.number, key="k").numbers == (1,)
    end(store)


def the_same_key_gives_the_same_receipt(create: Create) -> None:
    store = make(create, 6)
    query = ask(store, "ann", 3, 1.0)
    first = store.answer("ann", 2.0, labels(query.ids), query.number, key="k")
    changed = store.answer("ann", 3.0, labels(query.ids[:1], "dog"), query.number, key="l")
    again = store.answer("ann", 4.0, labels(query.ids), query.number, key="k")
    assert first == again
    assert (first.repeated, again.repeated) == (False, True)
    assert (first.numbers, changed.numbers) == ((1, 2, 3), (4,))
    assert store.answers.labels()[store.samples.rows(query.ids[:1])[0]].value == "dog", (
        "a call that came again undid a later one"
    )
    assert "other answers" in refused(
        AnswerError, store.answer, "ann", 5.0, labels(query.ids, "dog"), query.number, key="k"
    )
    assert store.answer("bob", 6.0, labels(query.ids), query.number, key="k").numbers == (5, 6, 7)
    end(store)


def equal_answers_change_nothing(create: Create) -> None:
    store = make(create, 6)
    query = ask(store, "ann", 2, 1.0)
    first = store.answer("ann", 2.0, labels(query.ids), query.number)
    assert store.answer("ann", 3.0, labels(query.ids), query.number) == first
    assert store.answer("ann", 3.0, labels(query.ids), query.number, key="new key") == first
    assert store.answer("ann", 4.0, labels(query.ids[:1], "dog"), query.number).numbers == (3,)
    assert store.answer("ann", 5.0, labels(query.ids), query.number).numbers == (4, 2), "cat, dog, cat is three answers"
    assert store.answer("ann", 6.0, labels(["s0", "s1", "s2"], "owl")) == store.answer(
        "ann", 7.0, labels(["s0", "s1", "s2"], "owl")
    )
    assert store.count(8.0).answers == 7
    for who, value in (("ann", "cat"), ("bob", "dog"), ("ann", "cat")):
        store.answer(who, 9.0, labels(["s5"], value))
    assert store.count(10.0).answers == 10, "who repeats an answer after somebody else's has said something new"
    assert store.answers.labels()[5].value == "cat"
    end(store)


def late_answers_count(create: Create) -> None:
    store = make(create, 2)
    late = ask(store, "ann", 2, 1.0, 10.0)
    now_with = ask(store, "bob", 2, 20.0, 10.0)
    store.answer("ann", 21.0, labels(late.ids, "cat"), late.number)
    assert store.count(22.0).labelled == 2
    store.answer("bob", 23.0, labels(now_with.ids, "dog"), now_with.number)
    assert [(label.value, label.answers, label.disagree) for label in store.answers.labels().values()] == [
        ("dog", 2, True)
    ] * 2
    end(store)


def values_of_every_kind(create: Create) -> None:
    values: list[Any] = [
        "cat",
        "",
        "ü\x00🐈\udcff",
        0,
        -7,
        2**62,
        0.1,
        1e300,
        True,
        False,
        [1, [2]],
        {"a": None, "b": {"c": []}},
    ]
    store = make(create, len(values))
    store.answer("ann", 1.0, [NewAnswer(f"s{row}", value) for row, value in enumerate(values)])
    found = [label.value for label in store.answers.labels().values()]
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]
    end(store)


def undo_takes_back_one_answer(create: Create) -> None:
    store = make(create, 4)
    store.answer("ann", 1.0, labels(["s0"], "cat"))
    store.answer("ann", 2.0, labels(["s0"], "dog"))
    store.answer("bob", 3.0, labels(["s1"], "owl"))
    receipt, taken = store.undo("ann", 4.0)
    assert (taken.number, taken.value, receipt.numbers) == (2, "dog", (4,))
    assert store.answers.labels()[0].value == "cat"
    assert store.undo("ann", 5.0, 2)[0] == receipt, "an answer was undone twice"
    refused(AnswerError, store.undo, "ann", 6.0, 3)
    refused(AnswerError, store.undo, "ann", 6.0, 4)
    refused(AnswerError, store.undo, "ann", 6.0, 9)
    first = store.undo("ann", 7.0, key="k")
    assert store.undo("ann", 8.0, key="k") == first
    assert 0 not in store.answers.labels()
    refused(AnswerError, store.undo, "ann", 9.0)
    assert "s0" in ask(store, "eve", 3, 10.0).ids, "a sample without an answer that counts is not asked about"
    assert [(answer.number, answer.kind, answer.undoes) for answer in store.answers.all(since=3)] == [
        (4, "undo", 2),
        (5, "undo", 1),
    ]
    end(store)


def skips_close_a_sample(create: Create) -> None:
    store = make(create, 3)
    store.answer("ann", 1.0, [NewAnswer("s1", kind="skip")])
    assert set(ask(store, "bob", 5, 2.0, at_most=True).ids) == {"s0", "s2"}
    assert (skips(store), store.answers.labels(), store.count(2.0).skipped) == ({1}, {}, 1)
    store.answer("bob", 3.0, labels(["s1"]))
    assert (skips(store), set(store.answers.labels())) == (set(), {1})
    store.answer("ann", 4.0, [NewAnswer("s1", kind="skip")])
    assert skips(store, "last") == {1}, "who repeats an answer after somebody else's was not heard"
    store.undo("ann", 5.0)
    assert (skips(store, "last"), set(store.answers.labels("last"))) == (set(), {1})
    store.undo("bob", 6.0)
    assert skips(store, "last") == {1}, "the first skip of ann still stands"
    end(store)


def what_several_people_said_in_one_call(create: Create) -> None:
    store = make(create, 4)
    said = [
        NewAnswer("s0", "cat", annotator="ann"),
        NewAnswer("s1", "cat", annotator="bob", at=3.0),
        NewAnswer("s1", "dog", annotator="ann", at=4.0),
        NewAnswer("s2", "owl"),
    ]
    receipt = store.answer("import", 9.0, said)
    assert receipt.numbers == (1, 2, 3, 4)
    assert [(answer.annotator, answer.value, answer.at) for answer in store.answers.all()] == [
        ("ann", "cat", 9.0),
        ("bob", "cat", 3.0),
        ("ann", "dog", 4.0),
        ("import", "owl", 9.0),
    ]
    assert store.answers.labels()[1].value == "dog", "the order of the call is not the order that counts"
    again = store.answer("import", 10.0, said)
    assert (again.numbers, again.repeated) == ((1, 2, 3, 4), True), "what was passed on before is on record again"
    store.answer("bob", 10.0, [NewAnswer("s1", "cat")])
    assert store.answers.labels()[1].value == "cat"
    refused(
        InputError, store.answer, "import", 11.0, [NewAnswer("s3", "cat"), NewAnswer("s0", "dog", annotator="x" * 201)]
    )
    refused(AnswerError, store.answer, "ann", 11.0, [NewAnswer("s3", "cat"), NewAnswer("s3", "dog", annotator="ann")])
    assert 3 not in store.answers.labels()
    query = ask(store, "eve", 1, 12.0)
    store.answer("import", 13.0, [NewAnswer(query.ids[0], "cat", annotator="eve")])
    assert store.count(14.0).leased == 0
    end(store)


def what_is_passed_on_overrules_nobody_who_answered_since(create: Create) -> None:
    store = make(create, 3)
    query = ask(store, "ann", 3, 1.0)
    store.answer("ann", 2.0, [*labels(query.ids[:2]), NewAnswer(query.ids[2], kind="skip")], query.number)
    store.answer("bob", 3.0, labels(query.ids[:1], "dog"))
    said = [*labels(query.ids[:2]), NewAnswer(query.ids[2], kind="skip")]
    receipt = store.answer("import", 4.0, [replace(new, annotator="ann", at=2.0) for new in said])
    assert (receipt.numbers, receipt.repeated) == ((1, 2, 3), True), (
        "what was told in a query is on record again when it is passed on"
    )
    assert {label.value for label in store.answers.labels().values()} == {"dog", "cat"}
    end(store)


def what_is_said_again_keeps_its_place(create: Create) -> None:
    store = make(create, 2)
    store.answer("ann", 1.0, labels(["s0"], "cta"))
    store.answer("bob", 2.0, labels(["s0"], "dog"))
    again = [
        NewAnswer("s0", "cat", annotator="ann", at=1.0, again=True),
        NewAnswer("s0", "dog", annotator="bob", at=2.0, again=True),
    ]
    receipt = store.answer("eve", 3.0, again, key="k")
    assert receipt.numbers == (3, 4), "an answer that is said again is on record again"
    assert store.answer("eve", 4.0, again, key="k").numbers == (3, 4)
    assert store.answers.labels()[0] == Label("dog", "bob", 2.0, 2, True, "label")
    end(store)


def an_answer_says_when_it_was_given(create: Create) -> None:
    store = make(create, 4)
    said = [NewAnswer("s0", "cat", at=5.0), NewAnswer("s1", kind="skip", at=0.0), NewAnswer("s2", "dog")]
    receipt = store.answer("ann", 9.0, said, key="k")
    assert [answer.at for answer in store.answers.all()] == [5.0, 0.0, 9.0]
    assert store.answers.labels()[0].at == 5.0
    assert store.answer("ann", 10.0, [replace(new, at=7.0) for new in said], key="k") == receipt, (
        "times make a call another one"
    )
    assert store.answer("ann", 11.0, [replace(said[0], at=8.0)]).repeated, "times make an answer another one"
    store.answer("ann", 12.0, [NewAnswer("s0", "owl", at=1.0)])
    assert (store.answers.labels()[0].value, store.answers.labels()[0].at) == ("owl", 1.0), (
        "the last answer is not the last on record"
    )
    bad: list[Any] = [-1.0, math.nan, math.inf, True, "noon"]
    for at in bad:
        assert "'s3'" in refused(
            AnswerError, store.answer, "ann", 13.0, [NewAnswer("s0", "cat"), NewAnswer("s3", "cat", at=at)]
        )
    assert store.answers.last_number() == 4
    end(store)


def calls_that_arrive_together(create: Create) -> None:
    """Each is a separate call: refused and repeated independently."""
    store = make(create, 6)
    query = ask(store, "ann", 3, 1.0)
    first, second, third = query.ids
    calls = [
        AnswerCall("ann", NewAnswer(first, "cat"), query.number, "a", None),
        AnswerCall("ann", NewAnswer("nobody", "cat"), None, "b"),
        AnswerCall("ann", NewAnswer(second, kind="skip"), query.number, "c", None),
        AnswerCall("ann", NewAnswer(third, {1, 2}), query.number, "d", None),
        AnswerCall("", NewAnswer(third, "cat"), query.number, "e", None),
        AnswerCall("bob", NewAnswer("s0" if "s0" not in query.ids else first, "dog"), None, "a"),
    ]
    done = store.answer_together(calls, 2.0)
    assert [type(one) for one in done] == [Recorded, IdError, Recorded, AnswerError, InputError, Recorded], done
    assert [one.number for one in done if isinstance(one, Recorded)] == [1, 2, 3]
    assert store.answers.last_number() == 3
    again = store.answer_together(calls[::-1], 3.0)[::-1]
    assert [one.number for one in again if isinstance(one, Recorded)] == [1, 2, 3]
    assert all(one.repeated for one in again if isinstance(one, Recorded))
    assert store.answers.last_number() == 3, "calls that came again were recorded again"
    changed = replace(calls[0], answer=NewAnswer(first, "dog"))
    assert isinstance(store.answer_together([changed], 4.0)[0], AnswerError), "a key came with another answer"
    assert store.answer_together([], 5.0) == []
    end(store)


def different_calls_in_one_transaction(create: Create) -> None:
    """`together`: one flush for all; a refused call takes back only itself, an exception takes back everything."""
    store = make(create, 6)

    def work() -> tuple[list[str], int]:
        query = ask(store, "ann", 2, 1.0, key="q")
        store.answer("ann", 1.0, labels(query.ids[:1]), query.number)
        refused(PoolExhausted, ask, store, "bob", 9, 1.0)
        refused(IdError, store.answer, "ann", 1.0, labels(["nobody"]))
        refused(IdError, store.together, lambda: (store.log(1.0, "lost"), store.samples.rows(["nobody"])))
        store.undo("ann", 1.0)
        store.log(1.0, "kept")
        store.together(lambda: store.answer("bob", 1.0, labels(query.ids[:1], "dog")))
        return query.ids, store.answers.last_number()

    ids, last = store.together(work)
    assert last == store.answers.last_number() == 3
    assert [event.kind for event in store.events()] == ["kept"]
    assert {store.samples.ids([row])[0]: label.value for row, label in store.answers.labels().items()} == {
        ids[0]: "dog"
    }

    def fails() -> None:
        store.answer("ann", 2.0, labels(["s1", "s2", "s3"]))
        raise KeyError("a mistake of the caller")

    refused(KeyError, store.together, fails)
    assert store.answers.last_number() == 3, "half of it is on record"
    assert ask(store, "ann", 2, 3.0, key="q").number == 1
    assert store.check() == []
    end(store)


def an_answer_may_expect_what_stands(create: Create) -> None:
    store = make(create, 6)

    def say(annotator: str, label: str, expects: int | None, opinions: int = 1) -> Recorded | InputError:
        return store.answer_together([AnswerCall(annotator, NewAnswer("s1", label), expects=expects)], 2.0, opinions)[0]

    assert say("ann", "cat", None) == Recorded(1)
    late = say("bob", "dog", None)
    assert isinstance(late, AnswerConflict)
    assert (late.number, late.annotator, late.label) == (1, "ann", "cat")
    assert isinstance(say("ann", "dog", None), AnswerConflict), "another tab of ann's had answered"
    changed = say("ann", "owl", 1)
    assert isinstance(changed, Recorded)
    assert changed.before is not None
    assert (changed.number, changed.before.number, changed.before.value) == (2, 1, "cat")
    assert isinstance(say("ann", "dog", 1), AnswerConflict)
    assert isinstance(say("bob", "dog", None, opinions=2), Recorded), "a second opinion is wanted"
    assert isinstance(say("eve", "dog", None, opinions=2), AnswerConflict)
    store.undo("ann", 3.0)
    store.undo("ann", 3.0)
    assert isinstance(say("ann", "dog", 2), AnswerConflict)
    assert store.answers.last_number() == 5
    end(store)


def the_last_answers_of_one(create: Create) -> None:
    store = make(create, 9)
    for row in range(8):
        store.answer("ann", 1.0, labels([f"s{row}"]))
        store.answer("bob", 1.0, labels([f"s{row}"], "dog"))
    store.answer("ann", 2.0, labels(["s0"], "owl"))
    store.undo("ann", 3.0, 15)
    found = store.answers.last_of("ann", 3)
    assert [(said.sample, said.value) for said in found] == [("s0", "owl"), ("s6", "cat"), ("s5", "cat")]
    assert len(store.answers.last_of("ann", 50)) == 7
    assert store.answers.last_of("eve", 3) == []
    end(store)


CHECKS: tuple[Check, ...] = (
    calls_that_arrive_together,
    different_calls_in_one_transaction,
    an_answer_may_expect_what_stands,
    the_last_answers_of_one,
    every_answer_or_none,
    the_same_key_gives_the_same_receipt,
    equal_answers_change_nothing,
    late_answers_count,
    values_of_every_kind,
    undo_takes_back_one_answer,
    skips_close_a_sample,
    what_several_people_said_in_one_call,
    what_is_passed_on_overrules_nobody_who_answered_since,
    what_is_said_again_keeps_its_place,
    an_answer_says_when_it_was_given,
)
