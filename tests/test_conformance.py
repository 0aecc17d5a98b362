from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

import ally
from ally.errors import BrokenPart, NonFiniteScore
from ally.scoring import Scored
from ally.testing import check_strategy, conformance_cases
from ally.types import BOTH_TASKS

CASES = list(conformance_cases(ally.CATALOGUE))


@pytest.mark.parametrize(("check", "strategy", "task"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_catalogue(check, strategy, task):
    check(strategy, task)


def test_every_entry_and_declared_task_is_covered():
    covered = {(name.split("-classification-")[0].split("-regression-")[0], task) for name, _, _, task in CASES}
    assert covered == {(name, task) for name, entry in ally.CATALOGUE.items() for task in entry.tasks}


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
        values = super().__call__(snapshot, streams).values
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
        ally.query(torch.rand(20, 3), [0, 1] * 3 + [None] * 14, n=3, strategy=ally.Strategy(score=Norm(), select=Repeating()))
