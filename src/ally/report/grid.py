"""Reads and checks the files of a grid: its results (``results.csv``) and description (``settings.json``)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ally.errors import InputError
from ally.json_form import find_misfit
from ally.metrics import metric_named

NAMES = ("dataset", "model", "objective", "setting", "strategy", "metric")
COUNTS = ("seed", "batch", "round", "labels", "validation_labels")
NUMBERS = ("value", "train_seconds", "query_seconds")
OPTIONAL = {"protocol": "", "positive_duals": "", "rank_quality": "", "learner": ""}
"""Columns that older files lack, with their default values. Duals are empty where a strategy has none, and the
learner where a model was named."""
COLUMNS = (*NAMES[:5], "seed", "batch", "round", "labels", "validation_labels", "metric", *NUMBERS, *OPTIONAL)
LARGEST = 10**9
"""Of a seed, a batch, a round or a number of labels."""
LARGEST_VALUE = 1e150
"""The squares of larger ones are no numbers."""
LONGEST = 2000
"""Characters of a name: of a model or a setting it is all that makes it."""
SERIES = 300
"""Every one is compared with every other of its data set."""
CAMPAIGN = ["dataset", "strategy", "setting", "objective", "model", "batch", "protocol", "seed"]
"""Columns that identify a simulated campaign."""


def read_results(path: Path) -> pd.DataFrame:
    """The rows of a ``results.csv``, or of the one in a folder; an error says what cannot be used and in which line."""
    file = path / "results.csv" if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"{file} does not exist; give a folder that `ally bench` wrote (it holds results.csv)")
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8")
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{file} is not a table of comma-separated values: {error}; run the grid again") from None
    missing = [name for name in COLUMNS if name not in table and name not in OPTIONAL]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}; its columns must be {','.join(COLUMNS)}")
    if table.empty:
        raise InputError(f"{file} holds no rows; run the grid first")
    table = table.assign(**{name: value for name, value in OPTIONAL.items() if name not in table})
    for name in (*COUNTS, *NUMBERS):
        table[name] = _numbers(file, table[name], whole=name in COUNTS)
    for name in ("positive_duals", "rank_quality"):
        table[name] = pd.to_numeric(table[name], errors="coerce").astype(float)
    _check_rows(file, table)
    return table[list(COLUMNS)]


def _numbers(file: Path, column: pd.Series[str], whole: bool) -> pd.Series[int] | pd.Series[float]:
    """The column as numbers; an error names the line of the first cell that is not one."""
    values = pd.to_numeric(column, errors="coerce").astype(float)
    bad = ~(np.abs(values.to_numpy()) <= LARGEST_VALUE)
    if whole:
        bad |= ~bad & ((values.to_numpy() % 1 != 0) | ~values.between(0, LARGEST).to_numpy())
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        kind = f"a whole number up to {LARGEST}" if whole else "a finite number"
        raise InputError(
            f"{file}, line {place + 2}: {column.name}={column.iloc[place]!r} is not {kind}; remove or rerun that "
            "campaign"
        )
    return values.astype(int) if whole else values


def _check_rows(file: Path, table: pd.DataFrame) -> None:
    for name in (*NAMES, *OPTIONAL):
        longest = table[name].astype(str).str.len().max()
        if longest > LONGEST:
            raise InputError(f"{file} holds a {name} of {longest} characters; names have at most {LONGEST}")
    lines = len(table[CAMPAIGN[:-1]].drop_duplicates())
    if lines > SERIES:
        raise InputError(f"{file} compares {lines} series, each with each other; at most {SERIES}: split the file")
    for name in ("dataset", "strategy"):
        if (table[name] == "").any():
            raise InputError(f"{file}, line {int(np.flatnonzero(table[name] == '')[0]) + 2}: {name} is empty; name it")
    for dataset, metrics in table.groupby("dataset", sort=False)["metric"].unique().items():
        for metric in metrics:
            metric_named(str(metric))
        if len(metrics) > 1:
            raise InputError(
                f"{dataset} is measured by {' and '.join(metrics)}; a report takes one metric per data set: split the "
                "file"
            )
    for key, about in (("round", "twice"), ("labels", "with two rounds of equally many labels")):
        repeated = table.duplicated([*CAMPAIGN, key])
        if repeated.any():
            place = int(np.flatnonzero(repeated)[0])
            row = table.iloc[place]
            raise InputError(
                f"{file}, line {place + 2}: {row['strategy']} on {row['dataset']}, seed {row['seed']}, {key} "
                f"{row[key]} appears {about}; remove the copy, or give the two runs different settings"
            )


@dataclass(frozen=True)
class Description:
    """All parts may be left out."""

    title: str = "Which strategy needs the fewest labels?"
    question: str = ""
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    """Name of the strategy (or of one series) that others are compared with; None for random, where it was run."""
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    constants: dict[str, float] = field(default_factory=dict)
    """By data set, the score of a constant answer."""
    substitute: str | None = None
    """Which data replaced which; shown at the top of the page."""


def read_description(folder: Path) -> Description:
    """``folder/settings.json``; defaults where the file or a key is missing, an error where a value is of the wrong
    kind."""
    file = folder / "settings.json"
    if not file.is_file():
        return Description()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON: {error}; fix or remove it") from None
    if not isinstance(found, dict):
        raise InputError(
            f"{file} holds a {type(found).__name__}; it must be an object with keys such as title and notes"
        )
    known = {item.name for item in fields(Description)}
    return Description(
        **{name: _checked(file, name, value) for name, value in found.items() if name in known and value is not None}
    )


def _checked(file: Path, name: str, value: Any) -> Any:
    if name in ("settings", "environment"):
        if isinstance(value, dict):
            return {str(key): entry if isinstance(entry, str) else json.dumps(entry) for key, entry in value.items()}
        raise InputError(f"{file}: {name} is {value!r}; it must be an object of names and texts")
    if name == "constants":
        if find_misfit(value, dict[str, float]) is None:
            return {str(key): float(entry) for key, entry in value.items()}
        raise InputError(f"{file}: constants is {value!r}; it must be an object of data sets and numbers")
    if name == "notes":
        if isinstance(value, list) and all(isinstance(note, str) for note in value):
            return tuple(value)
        raise InputError(f"{file}: notes is {value!r}; it must be a list of texts")
    if not isinstance(value, str):
        raise InputError(f"{file}: {name} is {value!r}; it must be a text")
    return value
