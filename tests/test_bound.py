"""An upper bound on the score: samples above it are not queried while others are left, whatever the selection."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

import ally
from ally.estimators import ConstrainedClassifier
from ally.features import Gradient
from ally.hygiene import Hygiene
from ally.scoring import PredictedDual, Scored
from ally.selection import (
    LCMD,
    BestMatch,
    ClusterCentre,
    ClusterMargin,
    ClusterTop,
    FisherGreedy,
    Herding,
    KCenter,
    KMeansPP,
    Perturbed,
    ProbCover,
    Shortlist,
    Top,
    TypiClust,
)
from ally.testing import check_strategy
from ally.testing.pools import blobs
from ally.types import BOTH_TASKS

SMALL = ConstrainedClassifier(hidden=(8,), epochs=3, batch_size=16)
SELECTIONS = [
    Top(),
    ClusterTop(),
    ClusterTop(shortlist=2),
    Perturbed(),
    Perturbed("power"),
    Herding(weighted=True),
    Shortlist(KCenter(), times=2),
    KMeansPP(Gradient()),
    ClusterMargin(),
    ClusterCentre(),
    FisherGreedy(),
    LCMD(),
    ProbCover(),
    TypiClust(),
    BestMatch(paths=2),
]


@dataclass(frozen=True)
class RowNumber:
    """Scores a sample by its row, so that the test knows which are above a bound."""

    bound: float
    tasks: ClassVar = BOTH_TASKS
    reads: ClassVar = True

    def __call__(self, snapshot, streams):
        return Scored(torch.from_numpy(snapshot.candidates.rows).double(), bound=self.bound)


def ask(n, bound, select=Top(), hygiene=None, objective="pdcl"):
    """Of rows 12 to 59."""
    scene = blobs("classification")
    strategy = ally.Strategy(RowNumber(bound), select, objective)
    q = ally.query(scene.X, scene.y, n=n, strategy=strategy, model=SMALL, random_state=0, hygiene=hygiene)
    assert len(set(q.ids.tolist())) == n
    return q


@pytest.mark.parametrize("select", SELECTIONS, ids=repr)
def test_nothing_above_the_bound_is_picked(select):
    q = ask(6, 39, select)
    assert max(q.ids) <= 39
    assert q.report["set_aside"]["bound"] == 20
    assert "20 candidates above the bound on the score set aside" in q.notes
    assert (q.why["percentile"] <= 100 * 28 / 48).all()
    assert np.isfinite(q.scores).all()
    assert max(ask(6, np.inf, Top()).ids) == 59


@pytest.mark.parametrize("select", SELECTIONS, ids=repr)
@pytest.mark.parametrize("n", [6, 8, 48])
def test_too_few_below_are_filled_from_above_lowest_first(select, n):
    q = ask(n, 15, select)
    assert set(q.ids[:4].tolist()) == {12, 13, 14, 15}
    assert q.ids[4:].tolist() == list(range(16, 12 + n))
    assert (q.report["set_aside"]["bound"], q.report["set_aside"]["recalled"]) == (44, n - 4)
    assert f"{n - 4} of those set aside are used after all, because too few others are left; they come last" in q.notes


def test_a_bound_below_everyone_asks_for_the_lowest():
    assert ask(5, -1.0).ids.tolist() == [12, 13, 14, 15, 16]


def test_the_bound_and_hygiene_together():
    q = ask(6, 39, hygiene=Hygiene("near", outliers=0.25))
    assert max(q.ids) <= 39
    assert (q.report["set_aside"]["bound"], q.report["set_aside"]["outliers"]) == (20, 7)


def test_a_bounded_strategy_keeps_every_promise():
    check_strategy(ally.Strategy(PredictedDual(ceiling=0.05), ClusterTop(shortlist=5), "pdcl"))
