"""Figures of merit: what each is, which way is better, and what a constant answer would score."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ally.errors import InputError, UnknownName
from ally.types import AnyArray, FloatArray, IntArray, Task

LEAST_PROBABILITY = 1e-15


@dataclass(frozen=True)
class Said:
    """What a model says of n samples, beside the truth. Classes are numbers 0 … C - 1, or targets are floats."""

    truth: AnyArray
    """(n,) class numbers or targets."""
    predicted: AnyArray
    """(n,) the same kind."""
    probabilities: FloatArray | None = None
    """(n, C) for classification."""

    def at(self, rows: IntArray) -> Said:
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return Said(self.truth[rows], self.predicted[rows], probabilities)


@dataclass(frozen=True)
class Metric:
    """A measure of predictions on samples with known labels."""

    name: str
    task: Task
    higher: bool
    measure: Callable[[Said], float] = field(repr=False)
    """NaN where the samples do not allow it: one class only, targets that are all equal."""
    points: bool = False
    """A share: differences are told in points, hundredths of it."""
    probabilities: bool = False
    """Whether it needs a probability per class."""
    bench_only: bool = False

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is."""
        return 1.0 if self.higher else -1.0

    @property
    def direction(self) -> str:
        return f"{'higher' if self.higher else 'lower'} is better"

    @property
    def words(self) -> str:
        """Its name in a sentence."""
        return {"r2": "R²", "auroc": "AUROC", "rmse": "RMSE", "mae": "MAE", "macro_f1": "macro F1"}.get(
            self.name, self.name.replace("_", " ")
        )

    def digits(self, size: float) -> int:
        """Decimals for values of that size: four for shares, otherwise four figures that count."""
        if self.points or size == 0:
            return 4
        return min(max(3 - math.floor(math.log10(abs(size))), 0), 8)


def _accuracy(said: Said) -> float:
    return float(np.mean(said.truth == said.predicted))


def recalls(truth: AnyArray, predicted: AnyArray) -> dict[int, tuple[int, int]]:
    """By class number, of those that occur: how many samples are recognised, and how many there are."""
    return {
        int(number): (int(np.sum(predicted[truth == number] == number)), int(np.sum(truth == number)))
        for number in np.unique(truth)
    }


def _balanced_accuracy(said: Said) -> float:
    return float(np.mean([right / n for right, n in recalls(said.truth, said.predicted).values()]))


def _macro_f1(said: Said) -> float:
    """Over the classes that occur among the labels or the predictions."""
    scores = []
    for number in np.union1d(said.truth, said.predicted):
        hits = float(np.sum((said.truth == number) & (said.predicted == number)))
        scores.append(2 * hits / float(np.sum(said.truth == number) + np.sum(said.predicted == number)))
    return float(np.mean(scores))


def _auroc(said: Said) -> float:
    """The mean over classes of the area under the curve of each against the rest (of two classes: of the second)."""
    from scipy.stats import rankdata

    assert said.probabilities is not None
    count = said.probabilities.shape[1]
    areas = []
    for number in (1,) if count == 2 else range(count):
        own = said.truth == number
        inside, outside = int(own.sum()), int((~own).sum())
        if inside and outside:
            ranks = rankdata(said.probabilities[:, number])
            areas.append((float(ranks[own].sum()) - inside * (inside + 1) / 2) / (inside * outside))
    return float(np.mean(areas)) if areas else math.nan


def _log_loss(said: Said) -> float:
    assert said.probabilities is not None
    own = said.probabilities[np.arange(len(said.truth)), said.truth.astype(np.int64)]
    return float(-np.mean(np.log(np.clip(own.astype(np.float64), LEAST_PROBABILITY, 1.0))))


def _r2(said: Said) -> float:
    """1 - squared error / variance."""
    spread = float(np.square(said.truth - said.truth.mean()).sum())
    return 1.0 - float(np.square(said.truth - said.predicted).sum()) / spread if spread else math.nan


def _mse(said: Said) -> float:
    return float(np.mean(np.square(said.truth - said.predicted)))


def _rmse(said: Said) -> float:
    return math.sqrt(_mse(said))


def _mae(said: Said) -> float:
    return float(np.mean(np.abs(said.truth - said.predicted)))


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "classification", True, _accuracy, points=True),
        Metric("balanced_accuracy", "classification", True, _balanced_accuracy, points=True),
        Metric("macro_f1", "classification", True, _macro_f1),
        Metric("auroc", "classification", True, _auroc, probabilities=True),
        Metric("log_loss", "classification", False, _log_loss, probabilities=True),
        Metric("r2", "regression", True, _r2),
        Metric("rmse", "regression", False, _rmse),
        Metric("mae", "regression", False, _mae),
        Metric("mse", "regression", False, _mse, bench_only=True),
    )
}


def metric_named(name: str) -> Metric:
    """The metric, or an error that lists those that are known."""
    if name not in METRICS:
        raise UnknownName(f"unknown metric {name!r}; known metrics: {', '.join(METRICS)}")
    return METRICS[name]


def metric_for(name: str, task: Task, *, bench: bool = False) -> Metric:
    """The metric, if it is one of the task; `bench`: those of benchmarks too."""
    fitting = [metric.name for metric in METRICS.values() if metric.task == task and (bench or not metric.bench_only)]
    if name not in fitting:
        raise InputError.about("metric", name, f"is not a metric of {task}; use {', '.join(fitting)}")
    return METRICS[name]


def constant(metric: Metric, known: AnyArray, truth: AnyArray, classes: int = 0) -> float:
    """What the metric is for `truth` if every sample gets one answer: the most common class of `known` (with the shares
    of all classes as its probabilities), or the mean of `known`."""
    if metric.task == "regression":
        return metric.measure(Said(truth, np.full(len(truth), float(np.mean(known)))))
    counts = np.bincount(np.asarray(known, dtype=np.int64), minlength=classes)
    shares = (counts + 1.0) / (counts.sum() + len(counts))
    said = Said(truth, np.full(len(truth), int(counts.argmax())), np.tile(shares, (len(truth), 1)))
    return metric.measure(said)


def wilson(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share, `right` of `n` (Wilson's score interval)."""
    z = 1.959963984540054
    share, spread = right / n, z * z / n
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    low, high = ((share + spread / 2 + sign * half) / (1 + spread) for sign in (-1, 1))
    return max(0.0, low), min(1.0, high)


def constant_words(task: Task) -> str:
    """What the constant answer is, in words."""
    return "always answering the most common class" if task == "classification" else "always answering the mean"


def constant_name(task: Task) -> str:
    """What the constant answer is called in a table or a chart."""
    return "most common class" if task == "classification" else "mean"


def lopsided(counts: Sequence[int] | Any) -> bool:
    """Whether classes of these sizes are so uneven that accuracy misleads: the largest has four fifths of all, or ten
    times the smallest."""
    sizes = [int(n) for n in counts if n]
    if len(sizes) < 2 or sum(sizes) < 20:
        return False
    return max(sizes) >= 0.8 * sum(sizes) or max(sizes) >= 10 * min(sizes)
