"""All the numbers of a report, computed once from the rows of a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ally.errors import InputError
from ally.report.statistics.comparison import Comparison, compare_where_possible
from ally.report.statistics.curves import average_curves, gaps
from ally.report.statistics.efficiency import Efficiency, Ratio, Target, counts_as_baseline, efficiencies, label_ratio
from ally.report.statistics.series import add_series, series_of
from ally.report.statistics.significance import PairedTest, WinsAndLosses, against_baseline, all_pairs, win_matrix


@dataclass(frozen=True)
class SeriesCost:
    """Medians over the campaigns of one series on one data set."""

    dataset: str
    series: str
    train_per_label: float
    """Seconds of all trainings, divided by all labels bought."""
    query_per_label: float
    """Seconds of all queries, divided by the labels they asked for; NaN before the first query."""
    query: float
    """Seconds of one query; NaN before the first."""


def costs(results: pd.DataFrame) -> list[SeriesCost]:
    """One per data set and series, in the order of the file."""
    found = []
    for (dataset, series), rows in results.groupby(["dataset", "series"], sort=False):
        # The labels that the last row asked for have not been bought yet.
        answered = rows["query_seconds"].where(rows["labels"] < rows.groupby("seed")["labels"].transform("max"), 0.0)
        campaigns = (
            rows.assign(query=answered)
            .groupby("seed")
            .agg(
                train=("train_seconds", "sum"), query=("query", "sum"), first=("labels", "min"), last=("labels", "max")
            )
        )
        asked = (campaigns["last"] - campaigns["first"]).where(lambda labels: labels > 0)
        one = rows[rows["query_seconds"] > 0]["query_seconds"]
        found.append(
            SeriesCost(
                str(dataset),
                str(series),
                float((campaigns["train"] / campaigns["last"]).median()),
                float((campaigns["query"] / asked).median()),
                float(one.median()) if len(one) else float("nan"),
            )
        )
    return found


@dataclass(frozen=True)
class Summary:
    """The statistics of a grid. Smoothing changes only `curves`; everything else uses raw values."""

    baseline: str
    series: tuple[str, ...]
    strategies: dict[str, str]
    """Strategy by series."""
    curves: pd.DataFrame = field(repr=False)
    comparisons: tuple[Comparison, ...] = field(repr=False)
    targets: dict[str, Target] = field(repr=False)
    efficiencies: tuple[Efficiency, ...] = field(repr=False)
    ratios: dict[tuple[str, str], tuple[Ratio | None, Ratio | None]] = field(repr=False)
    """By data set and series: against the paired baseline and against the best baseline. The data set "" stands for all
    of them together, except those whose ratio may be too high or too low."""
    tests: tuple[PairedTest, ...] = field(repr=False)
    """Against the baseline."""
    pairs: tuple[PairedTest, ...] = field(repr=False)
    """All against all."""
    wins: dict[tuple[str, str], WinsAndLosses] = field(repr=False)
    costs: tuple[SeriesCost, ...] = field(repr=False)
    gaps: tuple[str, ...]
    smoothing: float | None = None
    constants: Mapping[str, float] = field(default_factory=dict)
    """By data set, the score of giving the same answer for every sample, if the grid reports it."""

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(c.dataset for c in self.comparisons))


def summarise(
    results: pd.DataFrame,
    baseline: str | None = None,
    smoothing: float | None = None,
    is_baseline: Callable[[str], bool] = counts_as_baseline,
) -> Summary:
    """Statistics of results (the rows of a ``results.csv``); `baseline` is random by default, if it was run.

    `is_baseline` tells which strategies may set the target of label efficiency: by default all except ALLY.
    """
    bad = ~np.isfinite(results["value"].to_numpy(dtype=float))
    if bad.any():
        row = results.iloc[int(np.flatnonzero(bad)[0])]
        place = f"{row['strategy']} on {row['dataset']}, seed {row['seed']}, round {row['round']}"
        raise InputError(f"{place}: value={row['value']} is not a finite number; remove or rerun that campaign")
    named = add_series(results)
    chosen = _baseline(named, baseline, is_baseline)
    targets, efficient = efficiencies(named, chosen, is_baseline)
    pairs = all_pairs(named)
    names = series_of(named)
    return Summary(
        baseline=chosen,
        series=tuple(names),
        strategies={str(s): str(t) for s, t in zip(named["series"], named["strategy"], strict=True)},
        curves=average_curves(named, smoothing),
        comparisons=tuple(compare_where_possible(named, chosen)),
        targets=targets,
        efficiencies=tuple(efficient),
        ratios=_ratios(efficient, names),
        tests=tuple(against_baseline(named, chosen)),
        pairs=tuple(pairs),
        wins=win_matrix(names, pairs),
        costs=tuple(costs(named)),
        gaps=tuple(gaps(named)),
        smoothing=smoothing,
    )


def _baseline(results: pd.DataFrame, asked: str | None, is_baseline: Callable[[str], bool]) -> str:
    known = list(dict.fromkeys([*results["strategy"].astype(str), *results["series"]]))
    if asked is not None:
        if asked not in known:
            raise InputError(f"the baseline {asked!r} is not among the results; it can be one of {', '.join(known)}")
        return asked
    return "random" if "random" in known else next(filter(is_baseline, known), known[0])


def _ratios(efficient: list[Efficiency], names: list[str]) -> dict[tuple[str, str], tuple[Ratio | None, Ratio | None]]:
    by_key = {(one.dataset, one.series): one for one in efficient}
    paired = {
        key: (by_key.get((one.dataset, str(one.baseline))), by_key[one.dataset, one.best])
        for key, one in by_key.items()
    }
    found = {}
    for dataset, series in [*by_key, *(("", name) for name in names)]:
        keys = [key for key in by_key if key[1] == series and dataset in ("", key[0])]
        sides = [
            [(by_key[key], other) for key in keys if (other := paired[key][side]) not in (None, by_key[key])]
            for side in (0, 1)
        ]
        if not dataset:
            sides = [[pair for pair in side if _bounded(pair)] for side in sides]
        found[dataset, series] = label_ratio(sides[0]), label_ratio(sides[1])
    return found


def _bounded(pair: tuple[Efficiency, Efficiency]) -> bool:
    ratio = label_ratio([pair], repeats=1)
    return ratio is not None and ratio.bound != "?"
