"""How good a model is on samples it was not trained on, and how well two models agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ally.campaign.settings import Settings
from ally.campaign.training.data import Part
from ally.campaign.values import CONSTANT, METRIC, RECALL
from ally.data import Samples
from ally.data.export.answers import reads
from ally.learning.trained import Trained
from ally.metrics import METRICS, Metric, Said, constant, recalls, wilson
from ally.store import Measure
from ally.types import AnyArray, FloatArray, Task

RESAMPLES = 1000
LEAST = 10
"""With fewer numbers, neither a bootstrap nor R² is meaningful."""
MOST_RECALLS = 100
"""With more classes, recall is not stored per class."""


def scores(
    task: Task,
    truth: Sequence[Any],
    predicted: Sequence[Any],
    *,
    known: Sequence[Any] = (),
    classes: Sequence[Any] = (),
    probabilities: FloatArray | None = None,
    metric: str | None = None,
) -> list[Measure]:
    """Every metric of the task on n labelled samples, `metric` first and with its 95 % interval; the score of a
    constant answer, given the labels `known` to training; and the recall of each class.

    `probabilities` (n, C) are in the order of `classes`. Metrics that these samples do not define are left out.
    """
    chosen = METRICS[metric or METRIC[task]]
    said, trained_on, count = _numbered(task, truth, predicted, known, classes, probabilities)
    others = [one for one in METRICS.values() if one.task == task and not one.bench_only and one != chosen]
    found = [_measured(one, said, interval=one is chosen) for one in (chosen, *others) if _possible(one, said)]
    if len(trained_on):
        found += [
            Measure(f"{CONSTANT}{one.name}", constant(one, trained_on, said.truth, count), n=len(said.truth))
            for one in (chosen, *others)
            if _possible(one, said)
        ]
    found += _recalls(said, [*classes, *truth, *predicted]) if task == "classification" else []
    return [measure for measure in found if math.isfinite(measure.value)]


def evaluation(trained: Trained, samples: Samples, part: Part, training: Part, settings: Settings) -> list[Measure]:
    """Figures of a model on the labelled samples of a part, `settings.metric` first."""
    seen = trained.look(samples.features(part.ids))
    return scores(
        settings.task,
        part.labels,
        trained.code.decode(seen.predictions.numpy()).tolist(),
        known=training.labels,
        classes=trained.fit.classes or (),
        probabilities=None if seen.probabilities is None else seen.probabilities.double().numpy(),
        metric=settings.metric,
    )


def _numbered(
    task: Task,
    truth: Sequence[Any],
    predicted: Sequence[Any],
    known: Sequence[Any],
    classes: Sequence[Any],
    probabilities: FloatArray | None,
) -> tuple[Said, AnyArray, int]:
    """Labels in the form metrics take: class numbers, with classes unknown to training last."""
    if task == "regression":
        y, p, labels = (np.asarray(values, dtype=np.float64) for values in (truth, predicted, known))
        return Said(y, p), labels, 0
    places = _places([*classes, *truth, *predicted])
    number = [np.asarray([places[reads(label)] for label in labels], dtype=np.int64) for labels in (truth, predicted)]
    if probabilities is not None and len(places) > probabilities.shape[1]:
        extra = np.zeros((len(probabilities), len(places) - probabilities.shape[1]))
        probabilities = np.hstack([probabilities, extra])
    trained_on = np.asarray([places[reads(label)] for label in known if reads(label) in places], dtype=np.int64)
    return Said(number[0], number[1], probabilities), trained_on, len(places)


def _places(labels: Sequence[Any]) -> dict[str, int]:
    return {text: place for place, text in enumerate(dict.fromkeys(map(reads, labels)))}


def _possible(metric: Metric, said: Said) -> bool:
    if metric.name == "r2" and len(said.truth) < LEAST:
        return False
    return not (metric.probabilities and said.probabilities is None)


def _measured(metric: Metric, said: Said, *, interval: bool) -> Measure:
    n, value = len(said.truth), metric.measure(said)
    if metric.name == "accuracy":
        low, high = wilson(round(value * n), n)
        return Measure(metric.name, value, low, high, n)
    if not interval or n < LEAST:
        return Measure(metric.name, value, n=n)
    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    low, high = np.nanquantile([metric.measure(said.at(rows)) for rows in drawn], (0.025, 0.975))
    return Measure(metric.name, value, float(low), float(high), n)


def _recalls(said: Said, labels: Sequence[Any]) -> Iterator[Measure]:
    names = list(_places(labels))
    found = recalls(said.truth, said.predicted)
    if len(found) <= MOST_RECALLS:
        for number, (right, n) in found.items():
            low, high = wilson(right, n)
            yield Measure(f"{RECALL}{names[number]}", right / n, low, high, n)


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
