"""Collective outliers, planted in digits: a tenth of the pool is off the distribution and gets random labels when asked
about."""

import numpy as np
import pytest

from ally.estimators import ConstrainedClassifier
from outliers import STRATEGIES, campaign, planted

SMALL = ConstrainedClassifier(hidden=(64,), lr=3e-3, epochs=20, batch_size=32)
SEEDS = (20, 21)


def picked(name):
    """Share of outliers among the picks, (seeds, rounds)."""
    runs = [campaign(planted("noise", seed), STRATEGIES[name], seed, rounds=3, model=SMALL) for seed in SEEDS]
    return np.asarray([[line["outliers"] / line["asked"] for line in run] for run in runs])


def test_the_pool_has_the_planted_outliers():
    pool = planted("noise", 20)
    assert pool.outlier.mean() == pytest.approx(0.1, abs=0.001)
    answers = np.bincount(pool.y[pool.outlier], minlength=10) / pool.outlier.sum()
    assert answers.max() < 0.25


def test_a_bound_on_the_dual_keeps_collective_outliers_out():
    unbounded, bounded = picked("paper's head, top"), picked("paper's head, top, cap 0.8")
    assert unbounded.mean() >= 0.3
    assert bounded.mean() <= 0.1
    assert (bounded.mean(1) < unbounded.mean(1)).all()
