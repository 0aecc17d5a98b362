"""Paired differences of two series: same seed, same start, same label counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from ally.report.statistics.curves import Curve
from ally.types import FloatArray


@dataclass(frozen=True)
class Pairs:
    """The curve means of two series, by seed, over the label counts that both cover."""

    seeds: tuple[int, ...]
    first: FloatArray = field(repr=False)
    second: FloatArray = field(repr=False)
    left_out: int = 0
    """Seeds that both have but that end earlier than the others."""
    upto: int = 0

    @property
    def differences(self) -> FloatArray:
        """Shape (seeds,): first minus second."""
        return self.first - self.second


def pair(first: dict[int, Curve], second: dict[int, Curve]) -> Pairs:
    """Pairs the campaigns of two series by seed.

    Each score is the metric averaged over the label counts of either series within the range that both cover,
    interpolated linearly. The first count is left out if both start there, because nothing has been chosen yet.
    Unfinished seeds are left out, because averages over different ranges cannot be paired.
    """
    everything = [*first.values(), *second.values()]
    start = max(min(curve.labels[0] for curve in side.values()) for side in (first, second))
    end = min(max(curve.labels[-1] for curve in side.values()) for side in (first, second))
    grid = np.unique(np.concatenate([curve.labels for curve in everything]))
    same_start = min(c.labels[0] for c in first.values()) == min(c.labels[0] for c in second.values())
    grid = grid[(grid > start if same_start else grid >= start) & (grid <= end)]
    shared = sorted(first.keys() & second.keys())
    if not len(grid):
        return Pairs((), np.empty(0), np.empty(0), 0, int(end))
    used = [
        seed
        for seed in shared
        if all(s[seed].labels[0] <= grid[0] and s[seed].labels[-1] >= end for s in (first, second))
    ]
    # An exact sum, so that equal curves have equal means whatever the order of their rows.
    scores = np.array([[math.fsum(side[seed].at(grid)) / len(grid) for seed in used] for side in (first, second)])
    return Pairs(tuple(used), scores[0], scores[1], len(shared) - len(used), int(end))


def t_interval(values: FloatArray, confidence: float = 0.95) -> tuple[float, float | None, float | None]:
    """Mean and Student's t interval of the mean; no interval from a single value."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    half = float(stats.t.ppf(0.5 + confidence / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def without_spread(low: float | None, high: float | None) -> bool:
    """Whether all differences are equal and not 0: a coincidence with few seeds, whose zero-width interval shows
    nothing."""
    return low is not None and high is not None and low * high > 0 and high - low <= 1e-9 * abs(low)
