"""What a label costs in compute."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Cost:
    """Medians over campaigns of one series on one data set."""

    dataset: str
    series: str
    train_per_label: float
    """Seconds of all trainings over all labels bought."""
    query_per_label: float
    """Seconds of all queries over the labels they asked for; NaN before the first query."""
    query: float
    """Seconds of one query; NaN before the first."""


def costs(results: pd.DataFrame) -> list[Cost]:
    """One per data set and series, in the order of the file."""
    found = []
    for (dataset, series), rows in results.groupby(["dataset", "series"], sort=False):
        # What the last row asked for has not been bought yet.
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
            Cost(
                str(dataset),
                str(series),
                float((campaigns["train"] / campaigns["last"]).median()),
                float((campaigns["query"] / asked).median()),
                float(one.median()) if len(one) else float("nan"),
            )
        )
    return found
