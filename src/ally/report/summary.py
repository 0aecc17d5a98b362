"""Statistics of a comparison: paired over seeds, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from ally.errors import InputError

LOWER_IS_BETTER = {"rmse", "mse"}


@dataclass(frozen=True)
class Comparison:
    """A strategy against the baseline on one data set: the paired difference of curve means, positive where it is better."""

    dataset: str
    strategy: str
    metric: str
    seeds: int
    curve_mean: float
    """Metric averaged over the rounds after the first training, then over seeds."""
    final: float
    final_std: float
    gain: float | None
    """Mean over seeds of the improvement on the baseline; None for the baseline itself."""
    low: float | None
    high: float | None
    seconds: float
    """Seconds per query, median."""

    @property
    def verdict(self) -> str:
        if self.gain is None:
            return "baseline"
        if self.low is None or self.high is None:
            return "one seed: no interval"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "not shown to differ"


def compare(results: pd.DataFrame, baseline: str = "random", confidence: float = 0.95) -> list[Comparison]:
    """One comparison per data set and strategy; intervals are Student's t over paired seeds."""
    comparisons = []
    mixed = [name for name in ("model", "setting", "batch") if name in results and results.groupby("dataset")[name].nunique().max() > 1]
    if mixed:
        raise InputError(f"the results differ in {mixed[0]} within one data set; compare one {mixed[0]} at a time")
    for dataset, part in results.groupby("dataset", sort=False):
        metric = str(part["metric"].iloc[0])
        sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
        means = part[part["round"] > 0].pivot_table(index="seed", columns="strategy", values="value", aggfunc="mean")
        if baseline not in means:
            raise InputError(f"{dataset} has no results for {baseline!r}; run the baseline too")
        for strategy in part["strategy"].unique():
            rows = part[part["strategy"] == strategy]
            last = rows[rows["round"] == rows["round"].max()]["value"].to_numpy(dtype=float)
            gain = low = high = None
            if strategy != baseline:
                difference = sign * (means[strategy] - means[baseline]).dropna().to_numpy(dtype=float)
                if len(difference):
                    gain, low, high = _interval(difference, confidence)
            comparisons.append(
                Comparison(
                    dataset=str(dataset),
                    strategy=str(strategy),
                    metric=metric,
                    seeds=int(rows["seed"].nunique()),
                    curve_mean=float(means[strategy].mean()),
                    final=float(last.mean()),
                    final_std=float(last.std(ddof=1)) if len(last) > 1 else 0.0,
                    gain=gain,
                    low=low,
                    high=high,
                    seconds=float(rows[rows["query_seconds"] > 0]["query_seconds"].median()),
                )
            )
    return comparisons


def sentence(comparison: Comparison, baseline: str = "random") -> str:
    """The comparison in words, with its uncertainty."""
    c = comparison
    if c.gain is None or c.low is None or c.high is None:
        return f"{c.strategy} on {c.dataset}: {c.verdict}."
    unit = "points of accuracy" if c.metric == "accuracy" else f"of {c.metric}"
    scale = 100.0 if c.metric == "accuracy" else 1.0
    gain, low, high = (scale * value for value in (c.gain, c.low, c.high))
    amount = f"{gain:+.2f} {unit} over the curve, 95% interval {low:+.2f} to {high:+.2f}, {c.seeds} paired seeds"
    words = {
        "better": f"{c.strategy} chooses better than {baseline} on {c.dataset}",
        "worse": f"{c.strategy} chooses worse than {baseline} on {c.dataset}",
        "not shown to differ": f"{c.strategy} is not shown to differ from {baseline} on {c.dataset}",
    }[c.verdict]
    direction = "" if c.metric == "accuracy" else " (positive is better)"
    return f"{words}: {amount}{direction}."


def _interval(differences: np.ndarray[tuple[int], np.dtype[np.float64]], confidence: float) -> tuple[float, float | None, float | None]:
    mean = float(differences.mean())
    if len(differences) < 2:
        return mean, None, None
    half = float(stats.t.ppf(0.5 + confidence / 2, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences)))
    return mean, mean - half, mean + half
