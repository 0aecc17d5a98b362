"""Translates between the caller's ids and row numbers in the pool."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ally.errors import IdError
from ally.types import AnyArray, IntArray


class Ids:
    """Ids of `n` rows. Without `values` the row numbers are the ids."""

    def __init__(self, n: int, values: Any = None) -> None:
        self._n = n
        self._values: AnyArray | None = None
        self._row_of: dict[Hashable, int] = {}
        if values is not None:
            self._values = _one_dimensional(values)
            if len(self._values) != n:
                raise IdError(f"ids has {len(self._values)} entries and X {n} rows; pass one id per row")
            try:
                self._row_of = {value: row for row, value in enumerate(self._values.tolist())}
            except TypeError as error:
                raise IdError(f"an id cannot be used as a key ({error}); use integers, strings or tuples") from error
            if len(self._row_of) != n:
                first = _first_repeat(self._values.tolist())
                raise IdError(f"id {first!r} appears more than once in ids; ids must be distinct")

    def __len__(self) -> int:
        return self._n

    @property
    def given(self) -> bool:
        """Whether they are not simply the row numbers."""
        return self._values is not None

    def one(self, row: int) -> Any:
        """The id of one absolute row."""
        return self.of(np.asarray([row])).tolist()[0]

    def of(self, rows: IntArray) -> AnyArray:
        """Ids of absolute rows."""
        return rows.copy() if self._values is None else self._values[rows]

    def row(self, id: Any) -> int:
        """Absolute row of one id. A whole number may be written as a text, and the other way round."""
        if self._values is not None:
            key = id.item() if isinstance(id, np.generic) else id
            for form in (key, as_text(key), as_whole(key)):
                if isinstance(form, Hashable) and form in self._row_of:
                    return self._row_of[form]
            raise IdError(
                f"id {id!r} is not in the pool of {self._n} samples; ids look like {self._values.tolist()[0]!r}"
            )
        id = as_whole(id)
        if isinstance(id, (int, np.integer)) and not isinstance(id, (bool, np.bool_)) and 0 <= id < self._n:
            return int(id)
        raise IdError(f"id {id!r} is not a row number of the pool; rows go from 0 to {self._n - 1}")

    def rows(self, ids: Iterable[Any]) -> IntArray:
        """Absolute rows of several distinct ids."""
        rows = np.asarray([self.row(id) for id in ids], dtype=np.int64)
        if len(np.unique(rows)) != len(rows):
            first = _first_repeat(rows.tolist())
            raise IdError(
                f"id {self.of(np.asarray([first])).tolist()[0]!r} is listed more than once; list each id once"
            )
        return rows


SampleId: TypeAlias = str | int
"""An id as it came: sources whose ids are whole numbers have them as numbers. Stores keep texts."""
AnswersById: TypeAlias = Mapping[str, Any] | Mapping[int, Any] | Mapping[SampleId, Any]
"""Answers by id."""
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
"""How a whole number is written: without leading zeros."""


def as_whole(id: Any) -> Any:
    """The number that a text writes; anything else as it is."""
    return int(id) if isinstance(id, str) and WHOLE.fullmatch(id) else id


def as_text(id: Any) -> Any:
    """A whole number as a store has it, also where a column with gaps holds 3 as 3.0; anything else as it is."""
    if isinstance(id, (bool, np.bool_)):
        return id
    if isinstance(id, (float, np.floating)) and float(id).is_integer():
        return str(int(id))
    return str(id) if isinstance(id, (int, np.integer)) else id


def are_whole(ids: Iterable[str]) -> bool:
    """Whether all are written as whole numbers, and so were numbers when they came."""
    return all(WHOLE.fullmatch(id) for id in ids)


def read_whole(ids: Sequence[str]) -> AnyArray:
    """Numbers, if all are written as whole ones; else the texts."""
    return np.asarray([int(id) for id in ids] if are_whole(ids) else list(ids))


def _one_dimensional(values: Any) -> AnyArray:
    array = values if isinstance(values, np.ndarray) else _without_coercion(values)
    if array.ndim != 1 or array.dtype.kind not in "iufUO":
        raise IdError(f"ids has shape {array.shape} and dtype {array.dtype}; pass one integer or string per row")
    if array.dtype.kind in "fO" and any(value is None or value != value for value in array.tolist()):
        raise IdError("ids holds None or NaN; give every row an id")
    return array


def _without_coercion(values: Any) -> AnyArray:
    """One entry per id; mixed types are kept, and tuples stay tuples."""
    entries = list(values) if hasattr(values, "__iter__") and not isinstance(values, str) else None
    if entries is None:
        raise IdError(f"ids is a {type(values).__name__}; pass one id per row")
    if (
        entries
        and len({type(entry) for entry in entries}) == 1
        and isinstance(entries[0], (int, float, str, np.generic))
    ):
        return np.asarray(entries)
    array = np.empty(len(entries), dtype=object)
    for place, entry in enumerate(entries):
        array[place] = entry
    return array


def _first_repeat(values: list[Any]) -> Any:
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
