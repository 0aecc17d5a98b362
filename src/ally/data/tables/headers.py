"""Does the first line of a file name its columns, or is it data already?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ally.data.identity import is_missing
from ally.data.tables.columns import as_number

BELOW_HEADER = 100
"""Rows below the first line that tell."""
AXIS = 3
"""So many numbers that only rise or only fall are names, such as years or wavelengths."""


def header_notes(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], source: object) -> tuple[str, ...]:
    """A sentence if `columns`, taken from the first line, look like values of the `rows` below it."""
    below = [row for row in rows[:BELOW_HEADER] if [str(value) for value in row.values()] != list(columns)]
    reason = _number_named(columns, below) or _among_values(columns, below)
    if reason is None:
        return ()
    return (
        f"the first line of {source} names the columns and looks like data: {reason}; if the file has no header, say "
        "header=False (--no-header)",
    )


def _number_named(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str | None:
    numbers = {name: number for name in columns if (number := _finite(name)) is not None}
    if not _like_values(list(numbers.values()), len(columns)):
        return None
    for name in numbers:
        values = [row.get(name) for row in rows]
        if values and all(is_missing(value) or as_number(value) is not None for value in values):
            return f"{name!r} would be the name of a column of numbers"
    return None


def _among_values(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str | None:
    for name in columns:
        if _finite(name) is None and any(row.get(name) == name for row in rows):
            return f"{name!r} is also a value of its column"
    return None


def _finite(text: str) -> float | None:
    number = as_number(text)
    return number if number is not None and math.isfinite(number) else None


def _like_values(numbers: Sequence[float], columns: int) -> bool:
    """Whether numbers that name columns are rather values: not a count of the columns, nor an axis."""
    steps = [after - before for before, after in pairwise(numbers)]
    if len(numbers) >= AXIS:
        return not (min(steps) > 0 or max(steps) < 0)
    if any(number < 0 or not number.is_integer() for number in numbers):
        return True
    return len(numbers) == columns == 2 and steps[0] != 1
