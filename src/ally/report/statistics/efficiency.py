"""Label efficiency: how many labels a series needs to reach what the best baseline finally reaches, and the ratio of
those numbers between series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from ally.metrics import Metric, metric_named
from ally.report.statistics.curves import Curve, complete, curves_by_seed
from ally.report.statistics.series import baseline_for
from ally.types import FloatArray

SHARE = 0.97


class Reached(NamedTuple):
    """The label count at which a curve reaches the target. If it never does, it is censored: the last label count, a
    lower bound."""

    labels: float
    censored: bool

    def __str__(self) -> str:
        return f"> {self.labels:.0f}" if self.censored else f"{self.labels:.0f}"


@dataclass(frozen=True)
class Target:
    """The target level on one data set, set by the best baseline."""

    dataset: str
    metric: str
    series: str
    value: float


@dataclass(frozen=True)
class Efficiency:
    """The labels that one series needs to reach the target of its data set."""

    dataset: str
    series: str
    labels: Reached
    """On the mean curve of its finished campaigns."""
    by_seed: dict[int, Reached]
    baseline: str | None
    """The series of the baseline it is paired with."""
    best: str
    """The best baseline, which set the target."""

    @property
    def reached(self) -> int:
        return sum(not one.censored for one in self.by_seed.values())


def counts_as_baseline(strategy: str) -> bool:
    """Every strategy except ALLY, its variants and its ablation."""
    return not strategy.startswith("ally") and strategy != "accumulated-loss"


def find_target(part: pd.DataFrame, is_baseline: Callable[[str], bool] = counts_as_baseline) -> Target | None:
    """97 % of the best baseline's mean final value; for errors, 97 % of its reduction since the first round.

    None without a baseline or, for errors, if the best one did not improve on its first round.
    """
    metric = metric_named(str(part["metric"].iloc[0]))
    best: tuple[float, str, Curve] | None = None
    for (series, strategy), rows in part.groupby(["series", "strategy"], sort=False):
        if is_baseline(str(strategy)):
            mean = mean_curve(curves_by_seed(rows))
            final = metric.sign * float(mean.values[-1])
            if best is None or final > best[0]:
                best = final, str(series), mean
    if best is None:
        return None
    _, series, mean = best
    first, final = float(mean.values[0]), float(mean.values[-1])
    if metric.higher:
        value = SHARE * final
    elif final < first:
        value = first - SHARE * (first - final)
    else:
        return None
    return Target(str(part["dataset"].iloc[0]), metric.name, series, value)


def labels_to_reach(curve: Curve, target: float, metric: Metric) -> Reached:
    """The first crossing, on straight lines between rounds, that also holds at the next round.

    A crossing in the last round has no next one and stays censored.
    """
    meets = metric.sign * curve.values >= metric.sign * target
    for place in range(len(meets) - 1):
        if meets[place] and meets[place + 1]:
            if place == 0:
                return Reached(float(curve.labels[0]), False)
            below, above = curve.values[place - 1], curve.values[place]
            share = (target - below) / (above - below)
            return Reached(
                float(curve.labels[place - 1] + share * (curve.labels[place] - curve.labels[place - 1])), False
            )
    return Reached(float(curve.labels[-1]), True)


def mean_curve(curves: dict[int, Curve]) -> Curve:
    """The average of finished campaigns, at every label count of any of them that lies within the range of all."""
    whole = list(complete(curves).values())
    first = max(curve.labels[0] for curve in whole)
    grid = np.unique(np.concatenate([curve.labels for curve in whole]))
    grid = grid[grid >= first]
    return Curve(grid, np.mean([curve.at(grid) for curve in whole], axis=0))


def efficiencies(
    results: pd.DataFrame, baseline: str, is_baseline: Callable[[str], bool] = counts_as_baseline
) -> tuple[dict[str, Target], list[Efficiency]]:
    """Targets by data set, and every series of the data sets that have one."""
    targets, found = {}, []
    for dataset, part in results.groupby("dataset", sort=False):
        target = find_target(part, is_baseline)
        if target is None:
            continue
        targets[str(dataset)] = target
        metric = metric_named(target.metric)
        for series, rows in part.groupby("series", sort=False):
            curves = curves_by_seed(rows)
            by_seed = {seed: labels_to_reach(curve, target.value, metric) for seed, curve in complete(curves).items()}
            labels = labels_to_reach(mean_curve(curves), target.value, metric)
            other = baseline_for(part, str(series), baseline)
            found.append(Efficiency(str(dataset), str(series), labels, by_seed, other, target.series))
    return targets, found


REPEATS = 5000


@dataclass(frozen=True)
class Ratio:
    """Labels needed by a series divided by labels needed by a reference; below 1, the series saves labels."""

    value: float
    low: float | None
    high: float | None
    bound: str
    """``"<"``: the reference did not reach the target on some seeds, so the ratio is at most this; ``">"``: the series
    did not, so it is at least this; ``"?"``: both happened; empty: exact."""
    seeds: int
    sets: int

    def __str__(self) -> str:
        return f"{self.bound} {self.value:.2f}".strip()

    @property
    def interval(self) -> str:
        return "" if self.low is None or self.high is None else f"{self.low:.2f} … {self.high:.2f}"


def label_ratio(
    pairs: Sequence[tuple[Efficiency, Efficiency]], confidence: float = 0.95, repeats: int = REPEATS
) -> Ratio | None:
    """The geometric mean over data sets of geometric means over paired seeds; each pair is (series, reference) on one
    data set.

    The interval resamples data sets if there are several, and seeds within each; one seed on one set has no interval.
    Censored counts enter as the last label count, and `bound` reports them. If both sides have some, the ratio may be
    too high or too low and has no interval. None without a paired seed, or if neither side reached the target.
    """
    logs, series_censored, reference_censored = [], False, False
    for series, reference in pairs:
        shared = sorted(series.by_seed.keys() & reference.by_seed.keys())
        ours, theirs = [series.by_seed[seed] for seed in shared], [reference.by_seed[seed] for seed in shared]
        if not all(one.censored for one in (*ours, *theirs)):
            logs.append(np.log([a.labels / b.labels for a, b in zip(ours, theirs, strict=True)]))
            series_censored |= any(one.censored for one in ours)
            reference_censored |= any(one.censored for one in theirs)
    if not logs:
        return None
    value = float(np.exp(np.mean([log.mean() for log in logs])))
    bound = {(True, False): ">", (False, True): "<", (True, True): "?"}.get((series_censored, reference_censored), "")
    low = high = None
    if bound != "?" and (max(len(log) for log in logs) > 1 or len(logs) > 1):
        draws = np.exp(_resampled(logs, repeats))
        low, high = (float(q) for q in np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2]))
    return Ratio(value, low, high, bound, sum(len(log) for log in logs), len(logs))


def _resampled(logs: list[FloatArray], repeats: int) -> FloatArray:
    """Shape (repeats,): the mean log ratio over resampled sets and seeds, with the same draws every time."""
    rng = np.random.default_rng(0)
    means = np.stack([rng.choice(log, (repeats, len(log))).mean(axis=1) for log in logs])
    if len(logs) == 1:
        return np.asarray(means[0])
    sets = rng.integers(0, len(logs), (len(logs), repeats))
    return np.asarray(np.take_along_axis(means, sets, axis=0).mean(axis=0))
