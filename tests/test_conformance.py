from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch

import ally
from ally.errors import BrokenPart, NonFiniteScore
from ally.scoring import Scored
from ally.testing import check_strategy, conformance
from ally.types import BOTH_TASKS
from conformance_params import QUICK, params

CASES = params({**ally.CATALOGUE, **QUICK})


@pytest.mark.parametrize(("check", "strategy", "task"), CASES)
def test_catalogue(check, strategy, task):
    check(strategy, task)


def test_every_entry_and_declared_task_is_covered():
    covered = {(case.values[1], case.values[2]) for case in CASES}
    assert covered == {(QUICK.get(name, entry), task) for name, entry in ally.CATALOGUE.items() for task in entry.tasks}


@pytest.mark.parametrize("name", QUICK)
def test_the_entry_itself_gives_exactly_n(name):
    entry = ally.CATALOGUE[name]
    for task in entry.tasks:
        assert len(conformance._ordinary_ids(entry, task)) == conformance.SEVERAL


@dataclass(frozen=True)
class Norm:
    """A user's score: distance from the origin of the embedding space."""

    tasks: ClassVar = BOTH_TASKS
    reads: ClassVar = True

    def __call__(self, snapshot, streams):
        return Scored(snapshot.candidates.embeddings.double().norm(dim=1))


@dataclass(frozen=True)
class Broken(Norm):
    def __call__(self, snapshot, streams):
        values = super().__call__(snapshot, streams).scores
        values[3] = torch.nan
        return Scored(values)


@dataclass(frozen=True)
class Repeating:
    """A user's selection with a fault: it picks the first candidate again and again."""

    tasks: ClassVar = BOTH_TASKS
    reads: ClassVar = True

    def __call__(self, snapshot, scores, n, streams, limits):
        from ally.selection.base import picked

        return picked(snapshot, torch.zeros(n, dtype=torch.int64), scores[:n])


def test_a_users_strategy_passes():
    check_strategy(ally.Strategy(score=Norm()))


def test_a_non_finite_score_stops_the_round():
    with pytest.raises(NonFiniteScore, match=r"1 scores that are NaN or infinite, the first for row 15"):
        check_strategy(ally.Strategy(score=Broken()))


def test_a_selection_that_repeats_itself_fails_the_suite():
    with pytest.raises(BrokenPart, match="picked 1 distinct rows"):
        ally.query(
            torch.rand(20, 3), [0, 1] * 3 + [None] * 14, n=3, strategy=ally.Strategy(score=Norm(), select=Repeating())
        )


FAULTS = {
    "memory_map_gives_the_same_ids": lambda X, y, arguments: isinstance(X, np.memmap),
    "chunk_size_does_not_change_ids": lambda X, y, arguments: arguments.get("chunk_size") == 1,
    "memory_budget_does_not_change_ids": lambda X, y, arguments: "memory_budget" in arguments,
    "huge_and_tiny_scales": lambda X, y, arguments: 1e20 < np.abs(X).max() < 1e50,
    "labels_of_every_kind": lambda X, y, arguments: isinstance(y[0], str),
    "own_ids": lambda X, y, arguments: "ids" in arguments,
}


@pytest.mark.parametrize(("check", "when"), FAULTS.items(), ids=FAULTS)
def test_a_batch_that_should_be_the_ordinary_one_and_is_not(monkeypatch, check, when):
    def faulty(X, y, **arguments):
        return ally.query(X, y, **{**arguments, "random_state": 99 if when(X, y, arguments) else 0})

    monkeypatch.setattr(conformance, "query", faulty)
    strategy = replace(ally.CATALOGUE["random"], about=check)  # whose ordinary batch nobody else shares
    for each in conformance.CHECKS:
        if each.__name__ == check:
            with pytest.raises(AssertionError):
                each(strategy, "classification")
        else:
            each(strategy, "classification")


def test_seeds_that_are_not_heeded_and_inputs_that_are_written_to(monkeypatch):
    calls = []

    def faulty(X, y, **arguments):
        calls.append(arguments)
        found = ally.query(X, y, **{**arguments, "random_state": len(calls)})
        X[0] = 0.0
        return found

    monkeypatch.setattr(conformance, "query", faulty)
    strategy = replace(ally.CATALOGUE["random"], about="faulty")
    with pytest.raises(AssertionError):
        conformance.equal_seeds_give_equal_ids(strategy, "classification")
    with pytest.raises(AssertionError):
        conformance.inputs_are_not_modified(strategy, "classification")


def test_the_ordinary_batch_is_asked_for_once_per_task_and_anew_by_each_call():
    found = []
    for _ in range(2):
        check_strategy("random")
        found.append(conformance._ordinary.cache_info())
    assert found[0].misses == 2
    assert found[0] == found[1]
