"""What follows from the answers: which label counts under each policy, and who gave it."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from typing import Any, get_args

from ally.errors import InputError
from ally.store import Label, NewAnswer, StoredAnswer
from ally.store.values import Policy
from ally.testing.store.tools import Check, Create, end, labels, make, refused, skips


def labels_by_either_policy(create: Create) -> None:
    store = make(create, 5)
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
    last, majority = store.answers.labels("last"), store.answers.labels("majority")
    assert {row: label.value for row, label in last.items()} == {0: "dog", 1: "dog"}
    assert {row: label.value for row, label in majority.items()} == {0: "dog", 1: "dog", 2: "owl"}
    assert (last[0].answers, last[0].disagree, last[0].annotator, last[0].at) == (4, True, "ann", 10.0)
    assert (majority[0].annotator, majority[2].disagree) == ("ann", False)
    assert (skips(store, "last"), skips(store, "majority")) == ({2}, set())
    skip = store.answers.decided()[2]
    assert (skip.kind, skip.value, skip.annotator, skip.at) == ("skip", None, "ann", 11.0)
    for refuses in (store.answers.labels, store.answers.decided, partial(store.count, 12.0)):
        refused(InputError, refuses, "first")
    end(store)


def the_median_of_numbers(create: Create) -> None:
    store = make(create, 9)
    said: list[list[Any]] = [
        [1.0, 1.2, 9.0],
        [1.0, 4.0],
        [4.0, 1.0, 9.0, 3.0],
        [-2.5],
        [1.0, 9.0, 1.0],
        [10.0, 9.5, -100.0, 1e3, 2.0],
    ]
    said += [[2.0, 2.0], [1e300, -1e300, 1.7e308, 1e308], [7, 8.5]]
    for row, values in enumerate(said):
        for at, value in enumerate(values):
            store.answer(f"person {at}", float(at), [NewAnswer(f"s{row}", value)])
    found = store.answers.labels("median")
    expected = [1.2, 2.5, 3.5, -2.5, 1.0, 9.5, 2.0, 1e300 / 2 + 1e308 / 2, 7.75]
    assert [found[row].value for row in range(9)] == expected
    assert [found[row].disagree for row in range(9)] == [True, True, True, False, True, True, False, True, True]
    assert [found[row].annotator for row in (0, 1, 2, 4)] == ["person 1", "person 1", "person 3", "person 2"]
    counts = store.count(9.0, "median")
    assert Counter(map(json.loads, counts.classes)) == Counter(expected)
    assert (counts.labelled, counts.disagreements) == (9, 7)
    store.answer("person 2", 10.0, [NewAnswer("s0", kind="skip"), NewAnswer("s1", 100.0)])
    store.answer("person 0", 11.0, [NewAnswer("s3", kind="skip")])
    changed = store.answers.labels("median")
    assert (changed[0].value, changed[1].value, changed.get(3)) == (1.1, 4.0, None), (
        "a skip votes, or a later number does not"
    )
    store.undo("person 2", 12.0)
    assert store.answers.labels("median")[1].value == 2.5, "a number that was taken back votes"
    assert {row: label.value for row, label in store.answers.labels("last").items()}[4] == 1.0
    end(store)


def _decide(people: list[StoredAnswer], policy: Policy) -> Label:
    """The answer that counts, as the contract states it."""
    voters = [answer for answer in people if answer.kind == "label"]
    chosen = value = None
    if policy == "majority" and voters:
        votes = Counter(answer.value for answer in voters)
        chosen = max(voters, key=lambda answer: (votes[answer.value], answer.number))
    if policy == "median" and voters:
        numbers = sorted(
            (answer for answer in voters if not isinstance(answer.value, str)), key=lambda answer: float(answer.value)
        )
        middle = numbers[(len(numbers) - 1) // 2 : len(numbers) // 2 + 1] or voters[-1:]
        chosen = max(middle, key=lambda answer: answer.number)
        value = (
            chosen.value
            if len({answer.value for answer in middle}) == 1
            else sum(answer.value for answer in middle) / 2
        )
    chosen = chosen or people[-1]
    value = chosen.value if value is None else value
    differ = len({answer.value for answer in voters}) > 1
    return Label(value, chosen.annotator, chosen.at, len(voters), differ, "skip" if chosen.kind == "skip" else "label")


def counts_by_every_policy(create: Create) -> None:
    for values in (["cat", "dog", "owl"], [1.0, 2.5, 4.0, 9.0], ["cat", 1.0, 2.0, "dog"]):
        _counts_by_every_policy(create, values)


def _counts_by_every_policy(create: Create, values: list[Any]) -> None:
    rng = random.Random(3)
    store = make(create, 18)
    store.samples.reserve("evaluate", 3, 0.0)
    for at in range(90):
        annotator, sample = rng.choice(["ann", "bob", "eve"]), f"s{rng.randrange(15)}"
        new = NewAnswer(sample, kind="skip") if rng.random() < 0.15 else NewAnswer(sample, rng.choice(values))
        store.answer(annotator, float(at), [new])
        if rng.random() < 0.15:
            store.undo(annotator, at + 0.5)
    roles = {sample.row: sample.role for sample in store.samples.all()}
    for policy in get_args(Policy):
        counts, decided = store.count(200.0, policy), store.answers.decided(policy)
        assert decided == {row: _decide(people, policy) for row, people in store.answers.opinions().items()}
        standing = {row: label for row, label in decided.items() if label.kind == "label"}
        assert (store.answers.labels(policy), skips(store, policy)) == (standing, set(decided) - set(standing))
        assert {json.loads(text): n for text, n in counts.classes.items()} == Counter(
            label.value for label in standing.values()
        )
        assert counts.deciders == Counter(label.annotator for label in standing.values())
        assert counts.said == Counter(
            answer.annotator
            for people in store.answers.opinions().values()
            for answer in people
            if answer.kind == "label"
        )
        assert counts.disagreements == sum(label.disagree for label in standing.values()) > 0
        for role, part in counts.roles.items():
            mine = [label.kind for row, label in decided.items() if roles[row] == role]
            assert (part.labelled, part.skipped) == (mine.count("label"), mine.count("skip"))
    end(store)


def the_labels_there_are(create: Create) -> None:
    store = make(create, 6)
    assert store.answers.values() == ([], 0)
    for at, value in enumerate(["dog", 1, "1", "dog", True], 1):
        store.answer("ann", float(at), [NewAnswer(f"s{at}", value)])
    store.answer("ann", 6.0, [NewAnswer("s0", kind="skip")])
    found, last = store.answers.values()
    assert [(type(value), value) for value in found] == [(str, "dog"), (int, 1), (str, "1"), (bool, True)]
    assert last == 6
    assert store.answers.values(2) == (["1", "dog", True], 6)
    store.undo("ann", 7.0, 5)
    store.answer("ann", 8.0, [NewAnswer("s2", "owl")])
    assert store.answers.values(standing=True) == (["dog", "1", "owl"], 8)
    end(store)


def who_said_what(create: Create) -> None:
    store = make(create, 600)
    assert (store.answers.last_number(), store.answers.annotators(), store.answers.opinions()) == (0, {}, {})
    store.answer("bob", 1.0, labels(f"s{row}" for row in range(600)))
    store.answer("ann", 2.0, labels(["s1", "s2"], "dog"))
    store.answer("ann", 3.0, labels(["s1"], "owl"))
    store.answer("eve", 4.0, [NewAnswer("s2", kind="skip")])
    store.answer("dan", 5.0, labels(["s3"]))
    store.undo("dan", 6.0)
    store.undo("bob", 7.0, 4)
    assert store.answers.last_number() == 607
    assert list(store.answers.annotators().items()) == [("bob", 599), ("ann", 2), ("eve", 1)]
    found = store.answers.opinions()
    assert set(found) == set(range(600)) - {3}
    assert [(said.annotator, said.kind, said.value) for said in found[2]] == [
        ("bob", "label", "cat"),
        ("ann", "label", "dog"),
        ("eve", "skip", None),
    ]
    assert [(said.annotator, said.value) for said in found[1]] == [("bob", "cat"), ("ann", "owl")]
    assert store.answers.opinions([2, 3, 1, 2]) == {1: found[1], 2: found[2]}
    assert store.answers.opinions(range(600)) == found
    assert store.answers.opinions([]) == {}
    for before in (store.answers.opinions([1, 2, 3], 602), store.answers.opinions(until=602)):
        assert [said.value for said in before[1]] == ["cat", "dog"]
        assert [said.annotator for said in before[3]] == ["bob"], "it was undone later"
    store.undo("ann", 8.0)
    assert [said.value for said in store.answers.opinions([1])[1]] == ["cat", "dog"], (
        "of one annotator the answer before counts again"
    )
    end(store)


CHECKS: tuple[Check, ...] = (
    labels_by_either_policy,
    the_median_of_numbers,
    counts_by_every_policy,
    the_labels_there_are,
    who_said_what,
)
