"""Columns of a table as numbers: what is learned (means, categories) is learned once, in one pass, and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from ally.data.identity import is_missing
from ally.errors import DataError, InputError
from ally.types import AnyArray

ColumnKind: TypeAlias = Literal["number", "category"]
MOST_CATEGORIES = 100
"""A text column with more categories than this, or than half the rows (names, notes, dates), is left out with a
note."""
MOSTLY = 0.9
"""A column in which at least this share of the values are numbers is one of numbers; its other values count as
missing."""
HARDLY, NEARLY, ENOUGH = 0.5, 0.8, 10
"""The one column that is filled in a smaller share of the rows than the first, where every other one is filled in at
least the second, may be the answer. Fewer rows than the third tell nothing."""
SHOWN = 6
"""Categories of a column that are named."""
NOTHING = frozenset({"NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "?", "-"})
"""Words for a missing value in a column of numbers."""


def as_number(value: Any) -> float | None:
    """The number a value is or is written as; NaN if it is missing; None if it is something else."""
    if is_missing(value) or (isinstance(value, str) and value.strip() in NOTHING | {""}):
        return math.nan
    if isinstance(value, str) and "_" in value:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass
class _Tally:
    """What one pass over a column found."""

    present: int = 0
    numbers: int = 0
    nothing: int = 0
    """Words for a missing value, and infinite numbers."""
    mean: float = 0.0
    odd: Any = None
    categories: set[str] | None = field(default_factory=set)

    def add(self, value: Any) -> None:
        if is_missing(value):
            return
        # A truth value is a category, as it is where it is written as text.
        number = None if isinstance(value, bool) else as_number(value)
        if number is not None and math.isnan(number) and not isinstance(value, str):
            return
        self.present += 1
        if number is None:
            self.odd = value if self.odd is None else self.odd
        elif math.isfinite(number):
            self.numbers += 1
            self.mean += (number - self.mean) / self.numbers
        else:
            self.nothing += 1
        if self.categories is not None:
            self.categories.add(str(value))
            if len(self.categories) > MOST_CATEGORIES:
                self.categories = None


@dataclass(frozen=True)
class NumberColumn:
    """The number; the mean where it is missing; with `marked`, a further feature that says where."""

    name: str
    mean: float
    marked: bool

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} is missing") if self.marked else (self.name,)

    def encode(self, value: Any) -> tuple[list[float], str | None]:
        """The features of a value, and what is odd about it."""
        number = as_number(value)
        problem = None
        if number is None:
            problem = f"holds {value!r}, not a number; it counts as missing"
        elif math.isinf(number):
            problem = f"holds {number}; it counts as missing"
        elif math.isnan(number) and not self.marked:
            problem = "is empty, and was not in any row that was learned from; the mean takes its place"
        is_known = number is not None and math.isfinite(number)
        features = [number if is_known and number is not None else self.mean, float(not is_known)]
        return features[: len(self.names)], problem and f"column {self.name!r} {problem}"


@dataclass(frozen=True)
class CategoryColumn:
    """One feature of 0 and 1 per category; with `marked`, a further one for a missing value."""

    name: str
    categories: tuple[str, ...]
    marked: bool

    @property
    def names(self) -> tuple[str, ...]:
        known = tuple(f"{self.name}={category}" for category in self.categories)
        return (*known, f"{self.name} is missing") if self.marked else known

    def encode(self, value: Any) -> tuple[list[float], str | None]:
        gone = is_missing(value)
        found = [float(not gone and str(value) == category) for category in self.categories]
        problem = None
        if not gone and not any(found):
            problem = (
                f"column {self.name!r} holds the new category {str(value)[:60]!r}; it counts as none of the known ones"
            )
        return ([*found, float(gone)] if self.marked else found), problem


@dataclass(frozen=True)
class ColumnEncoder:
    """Columns of a table as features (n, d) float64."""

    columns: tuple[NumberColumn | CategoryColumn, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)
    read: Mapping[str, str] = field(default_factory=dict, compare=False)
    """By column, how it is read: its kind and what becomes of missing values, or why it is left out."""

    @classmethod
    def learn(
        cls,
        rows: Iterable[Mapping[str, Any]],
        kinds: Mapping[str, ColumnKind | None],
        place: str,
        *,
        unasked: bool = False,
    ) -> ColumnEncoder:
        """From one pass over the rows. `kinds` names the columns; None leaves the kind to what they hold. With
        `unasked`, nobody chose the columns and none is known to hold the labels: one that may be the answer raises."""
        tallies = {name: _Tally() for name in kinds}
        n = 0
        for row in rows:
            n += 1
            for name, tally in tallies.items():
                tally.add(row.get(name))
        found, notes, read = [], [], {}
        for name, tally in tallies.items():
            column, read[name], odd = _decide(name, tally, n, kinds[name])
            found += [column] if column is not None else []
            notes += [odd] if odd is not None else []
        if unasked:
            _ensure_no_answer(tallies, [column.name for column in found], n)
        if not found:
            reasons = "; ".join(notes) or "it has no column but the id"
            raise DataError(f"{place} has no usable feature column ({reasons}); name a text, image or feature column")
        return cls(tuple(found), tuple(notes), read)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column.names)

    def __call__(self, rows: Sequence[Mapping[str, Any]], report: Callable[[int, str], None]) -> AnyArray:
        """Features (n, d); ``report(position, problem)`` is called for every value that is odd."""
        values = np.empty((len(rows), len(self.names)))
        for position, row in enumerate(rows):
            features: list[float] = []
            for column in self.columns:
                some, problem = column.encode(row.get(column.name))
                features += some
                if problem is not None:
                    report(position, problem)
            values[position] = features
        return values

    def to_json(self) -> list[dict[str, Any]]:
        columns = [asdict(column) for column in self.columns]
        return [{**kept, "categories": list(kept["categories"])} if "categories" in kept else kept for kept in columns]

    @classmethod
    def from_json(cls, kept: Iterable[Mapping[str, Any]]) -> ColumnEncoder:
        return cls(
            tuple(
                NumberColumn(**entry)
                if "mean" in entry
                else CategoryColumn(**{**entry, "categories": tuple(entry["categories"])})
                for entry in kept
            )
        )


def _ensure_no_answer(tallies: Mapping[str, _Tally], learned: Sequence[str], n: int) -> None:
    """Refuses the one `learned` column that is filled in few rows, as labels are while people give them."""
    filled = {name: tally.present - tally.nothing for name, tally in tallies.items()}
    few = [name for name in filled if 0 < filled[name] < HARDLY * n]
    others = [count for name, count in filled.items() if count and name not in few]
    if n < ENOUGH or len(few) != 1 or few[0] not in learned or not others or min(others) < NEARLY * n:
        return
    raise InputError(
        f"the column {few[0]!r} is filled in {filled[few[0]]} of {n} rows and the others in nearly all, so it may be "
        f"the answer, and what is to be predicted is never learned from unasked; say label={few[0]!r} (--label) if it "
        "holds labels, or name the columns to learn from (--column)"
    )


def _decide(
    name: str, tally: _Tally, n: int, kind: ColumnKind | None
) -> tuple[NumberColumn | CategoryColumn | None, str, str | None]:
    """The column if it is used, how it is read, and what is odd about it."""
    if kind is None:
        kind = "number" if tally.numbers and tally.numbers >= MOSTLY * (tally.present - tally.nothing) else "category"
    others = tally.present - tally.numbers - tally.nothing
    most = min(MOST_CATEGORIES, max(2, n // 2))
    reason = None
    if not tally.present:
        reason = "it is empty"
    elif kind == "number" and not tally.numbers:
        reason = f"it holds {tally.odd!r} and no number"
    elif kind == "category" and (tally.categories is None or len(tally.categories) > most):
        many = f"more than {MOST_CATEGORIES}" if tally.categories is None else str(len(tally.categories))
        reason = f"it has {many} different texts in {n} rows, and at most {most} can be categories"
    if reason is not None:
        return None, f"left out: {reason}", f"column {name!r} is left out: {reason}"
    odd = None
    if kind == "number":
        gone = n - tally.numbers
        filled = f"; {gone} missing become the mean {tally.mean:.4g}, marked in a further feature" if gone else ""
        if tally.odd is not None:
            odd = f"column {name!r} holds numbers and also {str(tally.odd)[:60]!r}: {others} values count as missing"
        return NumberColumn(name, tally.mean, bool(gone)), f"number{filled}", odd
    categories = tuple(sorted(tally.categories or ()))
    gone = n - tally.present
    some = ", ".join(categories[:SHOWN]) + (", …" if len(categories) > SHOWN else "")
    filled = f"; {gone} missing, a category of their own" if gone else ""
    if tally.numbers:
        texts = others + tally.nothing
        odd = f"column {name!r} holds {tally.numbers} numbers and {texts} texts: all count as categories"
    return CategoryColumn(name, categories, bool(gone)), f"category of {len(categories)}: {some}{filled}", odd
