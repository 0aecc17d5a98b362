"""Rows of pandas tables and series, brought together by their index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from ally.data.ids import Ids
from ally.errors import InputError


class AlignedRows(NamedTuple):
    """What goes with the rows of X, in their order, and sentences about what was reordered."""

    y: Any
    candidates: Any
    embeddings: Any
    validation: Any
    notes: tuple[str, ...]


def align_rows(X: Any, y: Any, candidates: Any, embeddings: Any, validation: Any) -> AlignedRows:
    """Each in the order of X's index, where both have one. `candidates` are aligned if they are a mask, and the labels
    of `validation` with its own samples. Raises `InputError` where two indexes name different rows."""
    notes: list[str] = []
    y = _align(y, "y", X, "X", notes)
    embeddings = _align(embeddings, "embeddings", X, "X", notes)
    if isinstance(candidates, pd.Series) and pd.api.types.is_bool_dtype(candidates.dtype):
        candidates = _align(candidates, "candidates", X, "X", notes)
    if isinstance(validation, (tuple, list)) and len(validation) == 2:
        known = _align(validation[1], "the labels of validation", validation[0], "its samples", notes)
        validation = (validation[0], known)
    return AlignedRows(y, candidates, embeddings, validation, tuple(notes))


def _align(value: Any, name: str, X: Any, rows: str, notes: list[str]) -> Any:
    """The value in the order of X's index. An index that only numbers the rows says nothing against another one."""
    if not isinstance(X, (pd.DataFrame, pd.Series)) or not isinstance(value, (pd.DataFrame, pd.Series)):
        return value
    wanted, found = X.index, value.index
    if len(wanted) != len(found) or not len(wanted) or wanted.equals(found):
        return value
    if wanted.is_unique and found.is_unique and (places := found.get_indexer(wanted)).min() >= 0:
        notes.append(f"{name}: put in the order of {rows}, by the index")
        return value.iloc[places]
    numbers = pd.RangeIndex(len(wanted))
    if wanted.equals(numbers) or found.equals(numbers):
        return value
    lost = next((id for id in found if id not in wanted), None)
    odd = f"{lost!r} is in that of {name} alone" if lost is not None else "they repeat an id, in different orders"
    raise InputError(
        f"the index of {name} does not match that of {rows}: {odd}; give both the same index, or pass an "
        "array (.to_numpy()) if the rows are in the same order"
    )


def labels_by_row(y: Any, ids: Ids) -> Any:
    """Labels by id, such as those of a file, in the order of the rows; others as they are."""
    if not isinstance(y, Mapping):
        return y
    labels: list[Any] = [None] * len(ids)
    for id, label in y.items():
        labels[ids.row(id)] = label
    return labels
