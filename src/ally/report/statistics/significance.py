"""Paired tests between series, corrected for their number; wins, ties and losses over data sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from ally.metrics import metric_named
from ally.report.statistics.curves import curves_by_seed
from ally.report.statistics.pairs import pair, t_interval, without_spread
from ally.report.statistics.series import baseline_for
from ally.types import FloatArray

LEVEL = 0.05


@dataclass(frozen=True)
class PairedTest:
    """Two series on one data set: two-sided p-values of the paired curve means."""

    dataset: str
    first: str
    second: str
    seeds: int
    difference: float
    """Positive if the first is better."""
    low: float | None
    high: float | None
    wilcoxon: float
    """Wilcoxon's signed-rank test, exact for few seeds."""
    t: float
    """The paired t test; NaN if all differences are equal."""
    wilcoxon_holm: float = float("nan")
    t_holm: float = float("nan")


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction keeps the chance of any false alarm in the family below the level. NaN is not counted."""
    corrected = [float("nan")] * len(p)
    order = sorted((place for place in range(len(p)) if not np.isnan(p[place])), key=lambda place: p[place])
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p[place]))
        corrected[place] = highest
    return corrected


def smallest_p(seeds: int, tests: int = 1) -> float:
    """The smallest p-value that a two-sided signed-rank test can give with this many seeds, after Holm's correction for
    `tests`."""
    return min(1.0, tests * 2.0 / 2.0**seeds)


def against_baseline(results: pd.DataFrame, baseline: str) -> list[PairedTest]:
    """Every series against its baseline, one family per data set."""
    found = []
    for _, part in results.groupby("dataset", sort=False):
        pairs = ((str(series), baseline_for(part, str(series), baseline)) for series in part["series"].unique())
        found += paired_tests(
            part, [(series, other) for series, other in pairs if other is not None and other != series]
        )
    return found


def all_pairs(results: pd.DataFrame) -> list[PairedTest]:
    """Every series against every other, one family per data set."""
    parts = [part for _, part in results.groupby("dataset", sort=False)]
    return [test for part in parts for test in paired_tests(part, combinations(map(str, part["series"].unique()), 2))]


def paired_tests(part: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> list[PairedTest]:
    """One family of tests on one data set; pairs with fewer than two finished shared seeds are left out."""
    metric = metric_named(str(part["metric"].iloc[0]))
    curves = {str(name): curves_by_seed(rows) for name, rows in part.groupby("series", sort=False)}
    found = []
    for first, second in pairs:
        paired = pair(curves[first], curves[second])
        if len(paired.seeds) > 1:
            differences = metric.sign * paired.differences
            mean, low, high = t_interval(differences)
            if without_spread(low, high):
                low = high = None
            p = _p_values(differences)
            found.append(
                PairedTest(str(part["dataset"].iloc[0]), first, second, len(paired.seeds), mean, low, high, *p)
            )
    corrected = zip(found, holm([one.wilcoxon for one in found]), holm([one.t for one in found]), strict=True)
    return [replace(one, wilcoxon_holm=w, t_holm=t) for one, w, t in corrected]


def _p_values(differences: FloatArray) -> tuple[float, float]:
    """The p-values of Wilcoxon's test and the t test; identical series do not differ."""
    if not differences.any():
        return 1.0, 1.0
    rank = float(stats.wilcoxon(differences).pvalue)
    if without_spread(float(differences.min()), float(differences.max())):
        return rank, float("nan")
    return rank, float(stats.ttest_1samp(differences, 0.0).pvalue)


class WinsAndLosses(NamedTuple):
    """A tie is a difference whose interval includes 0."""

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return f"{self.wins} / {self.ties} / {self.losses}"


def win_matrix(series: Sequence[str], tests: Sequence[PairedTest]) -> dict[tuple[str, str], WinsAndLosses]:
    """``matrix[row, column]``: the number of data sets on which the row beats, ties with, or loses to the column.

    Pairs without an interval are not counted; a pair that was never compared has no entry.
    """
    matrix: dict[tuple[str, str], WinsAndLosses] = {}
    for test in tests:
        if test.low is None or test.high is None:
            continue
        won, lost = int(test.low > 0), int(test.high < 0)
        tie = 1 - won - lost
        for key, add in (((test.first, test.second), (won, tie, lost)), ((test.second, test.first), (lost, tie, won))):
            before = matrix.get(key, WinsAndLosses(0, 0, 0))
            matrix[key] = WinsAndLosses(*(a + b for a, b in zip(before, add, strict=True)))
    return {(row, column): matrix[row, column] for row in series for column in series if (row, column) in matrix}


def totals(series: Sequence[str], matrix: dict[tuple[str, str], WinsAndLosses]) -> dict[str, WinsAndLosses]:
    """The sum of each row, for the series that have one."""
    rows = {name: [record for (row, _), record in matrix.items() if row == name] for name in series}
    return {name: WinsAndLosses(*map(sum, zip(*records, strict=True))) for name, records in rows.items() if records}
