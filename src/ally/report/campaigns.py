"""One simulated campaign as a curve, and what is missing from a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from ally.types import FloatArray


class Curve(NamedTuple):
    """The metric of one campaign: float64 arrays of shape (rounds,), by growing number of labels."""

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
    """The campaigns that went as far as the longest one of their series."""
    last = max(curve.labels[-1] for curve in curves.values())
    return {seed: curve for seed, curve in curves.items() if curve.labels[-1] == last}


def gaps(results: pd.DataFrame) -> list[str]:
    """Sentences about what a grid still lacks: seeds that a series does not have, campaigns and series that end
    early."""
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
