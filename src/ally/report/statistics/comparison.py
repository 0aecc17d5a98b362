"""Compares series with a baseline: paired by seed, with intervals, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ally.errors import InputError
from ally.metrics import metric_named
from ally.report.statistics.curves import Curve, complete, curves_by_seed, normalised_area
from ally.report.statistics.pairs import Pairs, pair, t_interval, without_spread
from ally.report.statistics.series import add_series, baseline_for


@dataclass(frozen=True)
class Comparison:
    """A series against the baseline on one data set: the paired difference of curve means, positive if the series is
    better."""

    dataset: str
    strategy: str
    """Name of the series: the strategy and the conditions that vary."""
    metric: str
    seeds: int
    curve_mean: float
    """Metric averaged over the rounds after the first training, then over seeds."""
    final: float
    final_std: float
    gain: float | None
    """Mean improvement over the baseline, over seeds; None for the baseline itself."""
    low: float | None
    high: float | None
    seconds: float
    """Median seconds per query."""
    area: float = float("nan")
    """Normalised area under the curve, averaged over seeds."""
    baseline: str | None = None
    """The series it is compared with; None for the baseline itself, or if there is none."""
    pairs: int = 0
    """Seeds that both finished."""
    left_out: int = 0
    """Seeds that both started but did not both finish."""
    is_baseline: bool = False

    @property
    def verdict(self) -> str:
        if self.is_baseline:
            return "baseline"
        if self.gain is None:
            return "no baseline" if self.baseline is None else "nothing to compare yet"
        if self.low is None or self.high is None:
            return "one seed: no interval"
        if without_spread(self.low, self.high):
            return "equal differences: no interval"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "not shown to differ"


def compare(results: pd.DataFrame, baseline: str = "random", confidence: float = 0.95) -> list[Comparison]:
    """One comparison per data set and series; intervals are Student's t over paired seeds.

    `baseline` is a strategy, or the full name of one series. Each series is compared with the baseline run with the
    same setting, model, batch and objective, or the closest ones.
    """
    named = add_series(results)
    for dataset, part in named.groupby("dataset", sort=False):
        if baseline not in set(part["strategy"]) | set(part["series"]):
            raise InputError(f"{dataset} has no results for {baseline!r}; run the baseline too")
    return compare_where_possible(named, baseline, confidence)


def compare_where_possible(results: pd.DataFrame, baseline: str, confidence: float = 0.95) -> list[Comparison]:
    """The same for results with a column `series`; a data set without the baseline has no gains."""
    comparisons = []
    for _, part in results.groupby("dataset", sort=False):
        curves = {str(name): curves_by_seed(rows) for name, rows in part.groupby("series", sort=False)}
        for series in curves:
            other = baseline_for(part, series, baseline)
            pairs = None if other in (None, series) else pair(curves[series], curves[str(other)])
            own = replace(_alone(part, series, curves[series]), is_baseline=other == series)
            comparisons.append(own if pairs is None else _against(own, str(other), pairs, confidence))
    return comparisons


def _against(own: Comparison, other: str, pairs: Pairs, confidence: float) -> Comparison:
    gain = low = high = None
    if pairs.seeds:
        gain, low, high = t_interval(metric_named(own.metric).sign * pairs.differences, confidence)
    return replace(own, gain=gain, low=low, high=high, baseline=other, pairs=len(pairs.seeds), left_out=pairs.left_out)


def _alone(part: pd.DataFrame, series: str, curves: dict[int, Curve]) -> Comparison:
    """What can be said about a series on its own; unfinished campaigns are left out."""
    rows = part[part["series"] == series]
    whole = complete(curves).values()
    last = np.array([curve.values[-1] for curve in whole])
    asked = rows[rows["query_seconds"] > 0]["query_seconds"]
    return Comparison(
        dataset=str(part["dataset"].iloc[0]),
        strategy=series,
        metric=str(part["metric"].iloc[0]),
        seeds=len(whole),
        curve_mean=float(
            np.mean([(curve.values[1:] if len(curve.values) > 1 else curve.values).mean() for curve in whole])
        ),
        final=float(last.mean()),
        final_std=float(last.std(ddof=1)) if len(last) > 1 else float("nan"),
        gain=None,
        low=None,
        high=None,
        seconds=float(asked.median()) if len(asked) else float("nan"),
        area=float(np.mean([normalised_area(curve) for curve in whole])),
    )


def sentence(comparison: Comparison, baseline: str = "random") -> str:
    """The comparison in words, with its uncertainty."""
    c = comparison
    against = c.baseline or baseline
    if c.gain is None:
        return f"{c.strategy} on {c.dataset}: {c.verdict}."
    metric = metric_named(c.metric)
    unit = f"points of {c.metric.replace('_', ' ')}" if metric.points else f"of {c.metric}"
    scale, digits = (100.0, 2) if metric.points else (1.0, metric.digits(c.curve_mean))
    gain, low, high = (f"{scale * (value or 0.0):+.{digits}f}" for value in (c.gain, c.low, c.high))
    direction = "" if metric.higher else " (positive is better)"
    words = {
        "better": f"{c.strategy} chooses better than {against} on {c.dataset}",
        "worse": f"{c.strategy} chooses worse than {against} on {c.dataset}",
        "not shown to differ": f"{c.strategy} is not shown to differ from {against} on {c.dataset}",
    }
    if c.verdict not in words:
        return f"{c.strategy} against {against} on {c.dataset}: {gain} {unit} over the curve{direction}; {c.verdict}."
    amount = f"{gain} {unit} over the curve, 95% interval {low} to {high}, {c.pairs or c.seeds} paired seeds"
    return f"{words[c.verdict]}: {amount}{direction}."
