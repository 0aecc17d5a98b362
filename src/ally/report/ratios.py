"""Ratios of labels: geometric means with a paired bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ally.report.efficiency import Efficiency
from ally.types import FloatArray

REPEATS = 5000


@dataclass(frozen=True)
class Ratio:
    """Labels needed by a series over labels needed by a reference; below 1 it saves labels."""

    value: float
    low: float | None
    high: float | None
    bound: str
    """``"<"``: the reference never got there on some seeds, so that the ratio is at most this; ``">"``: the series did
    not, at least this; ``"?"``: both happened; empty: exact."""
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

    The interval resamples data sets where there are several, and seeds within each; it is absent for one seed on one
    set. Censored counts enter as the last label count and are told by `bound`; where both sides have some, the ratio
    may err either way and has no interval. None without a paired seed, and where nobody got there.
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
    """Shape (repeats,): the mean log ratio of resampled sets and seeds; the same draws every time."""
    rng = np.random.default_rng(0)
    means = np.stack([rng.choice(log, (repeats, len(log))).mean(axis=1) for log in logs])
    if len(logs) == 1:
        return np.asarray(means[0])
    sets = rng.integers(0, len(logs), (len(logs), repeats))
    return np.asarray(np.take_along_axis(means, sets, axis=0).mean(axis=0))
