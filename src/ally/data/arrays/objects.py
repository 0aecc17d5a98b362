"""Samples that are not all numbers, for learners that take them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ally.data.arrays.memory import ArraySource
from ally.data.base import Source
from ally.errors import InputError
from ally.types import AnyArray, IntArray


class ObjectSource(Source):
    """Texts, or rows of a table whose columns are of any kind: what a scikit-learn pipeline may begin with.

    `take` gives samples in the form they came in: an array of objects (n,) or (n, k), or a pandas frame.
    """

    numeric = False
    divisible = True

    def __init__(self, values: AnyArray, frame: Any = None, name: str = "X") -> None:
        if values.ndim not in (1, 2):
            raise InputError(f"{name} holds objects and has shape {values.shape}; pass one text or one row per sample")
        self._values = values
        self._frame = frame

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._values.shape[1:])

    def __len__(self) -> int:
        return len(self._values)

    def take(self, rows: IntArray) -> Any:
        return self._values[rows] if self._frame is None else self._frame.iloc[rows]

    def part(self, run: slice) -> ObjectSource:
        return ObjectSource(self._values[run], None if self._frame is None else self._frame.iloc[run])

    def read(self, rows: IntArray) -> AnyArray:
        """The samples as an array of objects."""
        return self._values[rows]

    def column(self, number: int) -> str:
        return str(number) if self._frame is None else repr(self._frame.columns[number])


class FrameSource(ArraySource):
    """A pandas frame of numbers; `take` gives its rows with the names of their columns."""

    def __init__(self, frame: Any, values: AnyArray, columns: Sequence[str], name: str = "X") -> None:
        super().__init__(values, columns, name)
        self._frame = frame

    def part(self, run: slice) -> FrameSource:
        return FrameSource(self._frame.iloc[run], self._array[run], self.names)

    def take(self, rows: IntArray) -> Any:
        return self._frame.iloc[rows]


def as_objects(X: Any, name: str = "X") -> ObjectSource | None:
    """The source of texts and of tables with columns that are no numbers; None for anything else."""
    if type(X).__module__.split(".")[0] in ("polars", "pyarrow") and hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        plain = all(getattr(dtype, "kind", "O") in "fiub" for dtype in X.dtypes)
        return None if plain else ObjectSource(X.to_numpy(dtype=object, na_value=None), X, name)
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], str):
        X = np.asarray(X, dtype=object)
    elif hasattr(X, "iloc"):
        X = X.to_numpy()
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "OUS":
        return None
    values: AnyArray = X.astype(object)
    return ObjectSource(values, name=name) if any(isinstance(value, str) for value in values.flat) else None


def as_frame(X: Any, name: str = "X") -> FrameSource | None:
    """The source of a pandas frame of numbers, with its column names; None for anything else."""
    if not (hasattr(X, "iloc") and hasattr(X, "columns")):
        return None
    return FrameSource(X, X.to_numpy(dtype=np.float64, na_value=np.nan), [str(key) for key in X.columns], name)
