"""When to stop: the expected gain of the next batch, and whether predictions still change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ally.metrics import METRICS, constant_words

WORTH = 0.005
"""A smaller gain in accuracy is not worth another batch for most people."""
SETTLED = 0.99
"""Predictions hardly change once two models in a row agree this well (Cohen's kappa)."""
RECENT = 6
"""How many of the last points of the curve the forecast uses."""


ROUGH = 0.2
"""If the interval of the expected gain is wider than this, it is not worth printing."""


@dataclass(frozen=True)
class Point:
    """One model of the campaign: how many labels it was trained on, and its accuracy on the evaluation sample.

    For regression, `value` is the coefficient of determination, and `deviation` its standard error.
    """

    labels: int
    value: float
    deviation: float


@dataclass(frozen=True)
class Gain:
    """What the next batch is expected to add, with its 95 % interval."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Evidence:
    """What the advice is based on."""

    curve: tuple[Point, ...]
    batch: int
    kappas: tuple[float, ...] = ()
    """Agreement of each model with the one before, on samples that are neither labelled nor evaluated."""
    budget: int | None = None
    """Total label budget."""
    labels: int = 0
    """Labels bought so far."""
    metric: str = "accuracy"
    """The metric of `Point.value`. If lower is better, `value` is the relative improvement over a constant answer."""
    measured: bool = True
    """Whether there is anything to measure the curve on."""
    no_better: tuple[float, float] | None = None
    """The metric of the newest model and of a constant answer, if the model is no better than that."""
    cross_validated: bool = False
    """Whether the curve is measured on the training labels themselves, out of fold."""


@dataclass(frozen=True)
class Advice:
    stop: bool
    sentence: str
    reasons: tuple[str, ...]
    gain: Gain | None


def expected_gain(curve: Sequence[Point], batch: int) -> Gain | None:
    """The gain of the next batch on a line in log(labels) fitted to the last points; None with fewer than three points.

    Points are weighted by their own uncertainty; if they scatter more than that, the interval widens accordingly.
    """
    recent = sorted({point.labels: point for point in curve}.values(), key=lambda point: point.labels)[-RECENT:]
    if len(recent) < 3:
        return None
    # Imported here so that asking and telling do not load scipy.
    from scipy.special import stdtrit

    x = np.log([point.labels for point in recent])
    y = np.asarray([point.value for point in recent])
    weights = 1.0 / np.square(np.maximum([point.deviation for point in recent], 1e-6))
    centre = float(np.average(x, weights=weights))
    spread = float(np.sum(weights * np.square(x - centre)))
    slope = float(np.sum(weights * (x - centre) * y) / spread)
    residuals = y - np.average(y, weights=weights) - slope * (x - centre)
    freedom = len(recent) - 2
    scatter = max(1.0, float(np.sum(weights * np.square(residuals))) / freedom)
    step = math.log((recent[-1].labels + batch) / recent[-1].labels)
    half = float(stdtrit(freedom, 0.975)) * math.sqrt(scatter / spread) * step
    # No value exceeds 1, whatever the line says.
    most = 1.0 - recent[-1].value
    return Gain(min(slope * step, most), min(slope * step - half, most), min(slope * step + half, most))


def advise(evidence: Evidence, worth: float = WORTH) -> Advice:
    """Stop at the budget, or when more labels are not expected to pay off and predictions have settled; else go on."""
    gain = expected_gain(evidence.curve, evidence.batch)
    reasons = list(_reasons(evidence, gain))
    if evidence.budget is not None and evidence.labels >= evidence.budget:
        return Advice(True, f"Stop: the budget of {evidence.budget} labels is spent.", tuple(reasons), gain)
    if evidence.no_better is not None:
        return Advice(False, _no_better(evidence.metric, *evidence.no_better), tuple(reasons), gain)
    settled = len(evidence.kappas) >= 2 and min(evidence.kappas[-2:]) >= SETTLED
    if not evidence.measured:
        blind = "no samples are held out to measure how good the model is"
        if settled:
            return Advice(
                True,
                f"You may stop: the model hardly changes from one training to the next; {blind}.",
                tuple(reasons),
                gain,
            )
        return Advice(
            False, f"Go on: {blind}; stop when it hardly changes from one training to the next.", tuple(reasons), gain
        )
    if gain is None:
        need = 3 - len({point.labels for point in evidence.curve})
        models = "model" if need == 1 else "models"
        return Advice(
            False,
            f"Go on: the curve needs {need} more evaluated {models} before anything can be said.",
            tuple(reasons),
            gain,
        )
    if gain.high < worth:
        return Advice(
            True, f"You may stop: the next {evidence.batch} labels are not expected to help.", tuple(reasons), gain
        )
    if settled and gain.expected < worth:
        return Advice(
            True,
            "You may stop: the model hardly changes, and more labels are expected to add little.",
            tuple(reasons),
            gain,
        )
    return Advice(False, f"Go on: the next {evidence.batch} labels may still help.", tuple(reasons), gain)


def _no_better(name: str, value: float, constant: float) -> str:
    metric = METRICS[name]
    return (
        f"The model is no better than {constant_words(metric.task)}: {metric.words} {value:.3g} against "
        f"{constant:.3g}. Label more; if that does not help, look for wrong labels (`ally review`), or try other "
        "columns or another model."
    )


def _reasons(evidence: Evidence, gain: Gain | None) -> list[str]:
    told = []
    if gain is not None and gain.high - gain.low > ROUGH:
        told.append(
            f"the curve is still too rough to say what {evidence.batch} more labels bring; "
            f"{'more' if evidence.cross_validated else 'evaluation'} labels make it finer"
        )
    elif gain is not None:
        expected, low, high = (100 * value for value in (gain.expected, gain.low, gain.high))
        metric = METRICS[evidence.metric]
        points = "points" if metric.points else f"hundredths of {metric.words}"
        points = points if metric.higher else f"% of the {metric.words} of {constant_words(metric.task)}"
        told.append(
            f"{evidence.batch} more labels: {expected:+.1f} {points} expected, 95 % interval {low:+.1f} to {high:+.1f}"
        )
    if evidence.cross_validated and evidence.curve:
        told.append("the curve is cross-validated on the labels that were chosen, which are not a random sample")
    if evidence.kappas:
        measure = "Cohen's kappa" if METRICS[evidence.metric].task == "classification" else "concordance"
        told.append(
            f"predictions agree with those of the model before: {evidence.kappas[-1]:.3f} ({measure}; 1 is the same)"
        )
    if evidence.budget is not None:
        told.append(f"{evidence.labels} of {evidence.budget} labels of the budget are spent")
    return told
