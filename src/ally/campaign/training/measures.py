"""How good a model is on samples nobody trained on, and how much two models agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from ally.campaign.values import METRIC
from ally.store import Measure
from ally.types import FloatArray, Task

RESAMPLES = 1000
LEAST = 10
"""Numbers below which a bootstrap says nothing."""


def score(task: Task, truth: Sequence[Any], predicted: Sequence[Any]) -> Measure:
    """Accuracy with Wilson's 95 % interval, or the coefficient of determination with a bootstrapped one, if there are
    `LEAST` samples."""
    n = len(truth)
    if task == "classification":
        right = sum(label == said for label, said in zip(truth, predicted, strict=True))
        interval = stats.binomtest(right, n).proportion_ci(method="wilson")
        return Measure(METRIC[task], right / n, float(interval.low), float(interval.high), n)
    y, p = (np.asarray(values, dtype=np.float64) for values in (truth, predicted))
    if n < LEAST:
        return Measure(METRIC[task], determination(y, p), n=n)
    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    low, high = np.quantile([determination(y[rows], p[rows]) for rows in drawn], (0.025, 0.975))
    return Measure(METRIC[task], determination(y, p), float(low), float(high), n)


def determination(y: FloatArray, predicted: FloatArray) -> float:
    """1 - squared error / variance; 0 where the targets are all equal."""
    spread = float(np.square(y - y.mean()).sum())
    return 1.0 - float(np.square(y - predicted).sum()) / spread if spread else 0.0


def agreement(task: Task, one: Sequence[Any], other: Sequence[Any]) -> float:
    """Cohen's kappa of two lists of classes; Lin's concordance of two lists of numbers, which is kappa with squared
    weights."""
    if task == "regression":
        a, b = (np.asarray(values, dtype=np.float64) for values in (one, other))
        total = float(a.var() + b.var() + np.square(a.mean() - b.mean()))
        return 1.0 if total == 0.0 else float(2 * np.mean((a - a.mean()) * (b - b.mean())) / total)
    left, right = ([str(value) for value in values] for values in (one, other))
    classes, places = np.unique([*left, *right], return_inverse=True)
    first, second = places[: len(left)], places[len(left) :]
    shares = np.bincount(first, minlength=len(classes)), np.bincount(second, minlength=len(classes))
    chance = float((shares[0] * shares[1]).sum()) / len(left) ** 2
    return 1.0 if chance == 1.0 else float((np.mean(first == second) - chance) / (1.0 - chance))
