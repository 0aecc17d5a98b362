"""Average curves: mean, standard deviation and an interval of the mean, per series and label count."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from ally.errors import InputError
from ally.types import FloatArray

KEYS = ["dataset", "metric", "series", "strategy"]


def average_curves(results: pd.DataFrame, smoothing: float | None = None, confidence: float = 0.95) -> pd.DataFrame:
    """Rows of dataset, metric, series, strategy, labels, seeds, mean, std, low, high.

    `low` and `high` bound the mean by Student's t over seeds; like `std` they are NaN for a single seed. With
    `smoothing` each campaign is smoothed first, so that the bands are those of smoothed curves.
    """
    rows = results.sort_values([*KEYS, "seed", "labels"], kind="stable")
    if smoothing is not None:
        rows = rows.assign(
            value=rows.groupby([*KEYS, "seed"])["value"].transform(lambda values: smooth(values.to_numpy(), smoothing))
        )
    table = (
        rows.groupby([*KEYS, "labels"], sort=False)["value"].agg(seeds="count", mean="mean", std="std").reset_index()
    )
    many = np.maximum(table["seeds"].to_numpy(dtype=float), 2.0)
    half = stats.t.ppf(0.5 + confidence / 2, many - 1) * table["std"] / np.sqrt(many)
    table["low"], table["high"] = table["mean"] - half, table["mean"] + half
    order = {
        key: place for place, key in enumerate(dict.fromkeys(zip(results["dataset"], results["series"], strict=True)))
    }
    places = [order[key] for key in zip(table["dataset"], table["series"], strict=True)]
    return table.assign(place=places).sort_values(["place", "labels"]).drop(columns="place").reset_index(drop=True)


def smooth(values: FloatArray, weight: float) -> FloatArray:
    """Exponential moving average: each value is `weight` of the average before it and 1 - `weight` of itself."""
    if not 0 <= weight < 1:
        raise InputError.about("smoothing", weight, "must be at least 0 and below 1; 0.6 is usual, 0 changes nothing")
    smoothed = np.array(values, dtype=float)
    for place in range(1, len(smoothed)):
        smoothed[place] = weight * smoothed[place - 1] + (1 - weight) * smoothed[place]
    return smoothed
