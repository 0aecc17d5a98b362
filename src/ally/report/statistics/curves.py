"""Learning curves of campaigns, their area and average, and what is missing from a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.integrate import trapezoid

from ally.errors import InputError
from ally.types import FloatArray


class Curve(NamedTuple):
    """The metric of one campaign: float64 arrays of shape (rounds,), in increasing number of labels."""

    labels: FloatArray
    values: FloatArray

    def at(self, labels: FloatArray) -> FloatArray:
        """The metric at other label counts within the curve, on straight lines between rounds."""
        return np.interp(labels, self.labels, self.values)


def curves_by_seed(rows: pd.DataFrame) -> dict[int, Curve]:
    """The campaigns of one series on one data set."""
    ordered = rows.sort_values(["seed", "labels"])
    return {
        int(str(seed)): Curve(part["labels"].to_numpy(dtype=float), part["value"].to_numpy(dtype=float))
        for seed, part in ordered.groupby("seed")
    }


def complete(curves: dict[int, Curve]) -> dict[int, Curve]:
    """The campaigns that are as long as the longest in their series."""
    last = max(curve.labels[-1] for curve in curves.values())
    return {seed: curve for seed, curve in curves.items() if curve.labels[-1] == last}


def gaps(results: pd.DataFrame) -> list[str]:
    """Sentences about what is missing from a grid: seeds of a series, and campaigns and series that end early."""
    found = []
    for dataset, part in results.groupby("dataset", sort=False):
        seeds, last = part["seed"].nunique(), part["labels"].max()
        for series, rows in part.groupby("series", sort=False):
            curves = curves_by_seed(rows)
            whole, end = len(complete(curves)), int(rows["labels"].max())
            if len(curves) < seeds:
                found.append(
                    f"{series} on {dataset} has {len(curves)} {'seed' if len(curves) == 1 else 'seeds'}, others "
                    f"{seeds}."
                )
            if whole < len(curves):
                found.append(
                    f"{series} on {dataset}: {len(curves) - whole} of {len(curves)} campaigns end before {end} labels."
                )
            if end < last and end + int(rows["batch"].iloc[0] if "batch" in rows else 0) <= last:
                found.append(f"{series} on {dataset} ends at {end} labels, others at {last}.")
    return found


def normalised_area(curve: Curve) -> float:
    """Trapezoid over labels, divided by the range of labels: the mean of the metric over that range."""
    width = float(curve.labels[-1] - curve.labels[0])
    if width == 0:
        return float(curve.values[0])
    return float(trapezoid(curve.values, curve.labels)) / width


KEYS = ["dataset", "metric", "series", "strategy"]


def average_curves(results: pd.DataFrame, smoothing: float | None = None, confidence: float = 0.95) -> pd.DataFrame:
    """Rows of dataset, metric, series, strategy, labels, seeds, mean, std, low, high.

    `low` and `high` are the Student's t interval of the mean over seeds; like `std`, they are NaN for a single seed.
    With `smoothing`, each campaign is smoothed first, so the bands belong to smoothed curves.
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
    """Exponential moving average: `weight` times the previous average plus 1 - `weight` times the value."""
    if not 0 <= weight < 1:
        raise InputError.about("smoothing", weight, "must be at least 0 and below 1; 0.6 is usual, 0 changes nothing")
    smoothed = np.array(values, dtype=float)
    for place in range(1, len(smoothed)):
        smoothed[place] = weight * smoothed[place - 1] + (1 - weight) * smoothed[place]
    return smoothed
