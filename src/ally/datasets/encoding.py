"""Columns of a table as numbers. What is learned (categories, medians) comes from the pool's rows only."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ally.errors import DataError
from ally.sources.rows.columns import MOSTLY, as_number
from ally.types import AnyArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 100
"""A column of text with more categories than this, or than half the pool's rows (names, ids, dates), is left out and
noted."""


def encode(table: pd.DataFrame, pool: IntArray, path: Path) -> tuple[AnyArray, list[str]]:
    """Features (n, d) float64 and notes.

    Numbers stay, and a missing one becomes the pool's median; a further column says where, if the pool has missing
    ones. Text among numbers counts as missing where it is rare. Other text becomes one column of 0 and 1 per category
    of the pool, missing being a category; a category the pool does not have is all zeros.
    """
    features: list[AnyArray] = []
    notes: list[str] = []
    for name in table.columns:
        column = table[name]
        kind = getattr(column.dtype, "kind", "O")
        if kind in "fiub":
            features += _number(column, pool, path, notes)
        elif kind in "mMc":
            notes.append(f"column {name!r} ({column.dtype}) is left out: turn it into numbers or categories to use it")
        elif (numbers := _mostly_numbers(column, notes)) is not None:
            features += _number(numbers, pool, path, notes)
        else:
            features += _categories(column, pool, notes)
    if not features:
        raise DataError(f"{path} has no usable feature column; {'; '.join(notes) or 'it has the target only'}")
    return np.column_stack(features), notes


def _mostly_numbers(column: pd.Series[Any], notes: list[str]) -> pd.Series[float] | None:
    """A column of text in which nearly all values are numbers, the others missing; None for any other column."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    try:
        kinds = column.value_counts(dropna=True, sort=False)
    except TypeError:  # lists, which cannot be counted
        return None
    read = {value: None if isinstance(value, bool) else as_number(value) for value in kinds.index}
    found = sum(n for n, value in zip(kinds, read.values(), strict=True) if value is not None and not math.isnan(value))
    odd = sum(n for n, value in zip(kinds, read.values(), strict=True) if value is None)
    if not found or found < MOSTLY * (found + odd):
        return None
    texts = {
        text: n for (text, value), n in zip(read.items(), kinds, strict=True) if value is None or math.isnan(value)
    }
    if texts:
        shown, total = str(next(iter(texts)))[:60], sum(texts.values())
        notes.append(f"column {column.name!r} holds numbers but also {shown!r}: {total} such values count as missing")
    return column.map({value: math.nan if number is None else number for value, number in read.items()}).astype(
        np.float64
    )


def _number(column: pd.Series[Any], pool: IntArray, path: Path, notes: list[str]) -> list[AnyArray]:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise DataError(
            f"column {column.name!r} of {path} holds {values[row]} (row {column.index[row]}); leave it empty or "
            "correct it"
        )
    gone = np.isnan(values)
    if gone[pool].all():
        notes.append(f"column {column.name!r} is left out: it is empty in the pool")
        return []
    if not gone.any():
        return [values]
    filled = np.where(gone, np.median(values[pool][~gone[pool]]), values)
    marked = bool(gone[pool].any())
    where = ", marked in a further column" if marked else ""
    notes.append(f"column {column.name!r}: {int(gone.sum())} missing values become the pool's median{where}")
    return [filled, gone.astype(np.float64)] if marked else [filled]


def _categories(column: pd.Series[Any], pool: IntArray, notes: list[str]) -> list[AnyArray]:
    gone = column.isna().to_numpy(dtype=bool)
    values = np.asarray(["" if missing else str(value) for value, missing in zip(column, gone, strict=True)])
    known = np.unique(values[pool][~gone[pool]])
    most = min(MOST_CATEGORIES, max(2, len(pool) // 2))
    if len(known) > most:
        notes.append(
            f"column {column.name!r} is left out: it has {len(known)} different texts in {len(pool)} rows, more than "
            f"{most}"
        )
        return []
    if not len(known):
        notes.append(f"column {column.name!r} is left out: it is empty in the pool")
        return []
    found = [((values == category) & ~gone).astype(np.float64) for category in known]
    return [*found, gone.astype(np.float64)] if gone[pool].any() else found
