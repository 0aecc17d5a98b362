"""Missing numbers of an array: the mean takes their place and a further feature marks them, as in tables."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np

from ally.data.arrays.memory import ArraySource
from ally.data.base import Source, chunks
from ally.types import AnyArray, IntArray


class Gaps(TypedDict):
    """The mean of each feature without what is missing, and which features are marked where they are missing."""

    means: list[float]
    marked: list[int]


class FilledSource(Source):
    """A source of numbers (d,) with the mean in place of NaN, and a feature 0 or 1 for each one that is marked."""

    def __init__(self, source: Source, gaps: Gaps) -> None:
        self.gaps = gaps
        self.divisible = source.divisible
        self._source = source
        self._means, self._marked = np.asarray(gaps["means"]), np.asarray(gaps["marked"], np.int64)
        columns = ", ".join(source.column(number) for number in gaps["marked"][:5])
        columns += ", …" if len(gaps["marked"]) > 5 else ""
        note = (
            f"missing numbers (in feature {columns}) become the mean of their feature, marked in a further one; an "
            "estimator of your own that takes NaN gets them as they are"
        )
        self.notes = (*source.notes, note)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._means) + len(self._marked),)

    def __len__(self) -> int:
        return len(self._source)

    def read(self, rows: IntArray) -> AnyArray:
        values = self._source.read(rows)
        gone = np.isnan(values)
        filled = np.where(gone, self._means.astype(values.dtype), values)
        return np.concatenate([filled, gone[:, self._marked].astype(values.dtype)], axis=1)

    def part(self, run: slice) -> FilledSource:
        return FilledSource(self._source.part(run), self.gaps)

    def column(self, number: int) -> str:
        known = len(self._means)
        if number < known:
            return self._source.column(number)
        return f"{self._source.column(int(self._marked[number - known]))} is missing"


def find_gaps(source: Source) -> Gaps | None:
    """The gaps of an array in memory or in a file; None if it has none. Infinite values stay where they are, for others
    to refuse."""
    if not isinstance(source, ArraySource) or len(source.shape) != 1:
        return None
    runs = [np.arange(chunk.start, chunk.stop) for chunk in chunks(len(source), width=math.prod(source.shape))]
    if not any(np.isnan(source.read(rows)).any() for rows in runs):
        return None
    totals, counts = np.zeros(source.shape), np.zeros(source.shape)
    missing = np.zeros(source.shape, bool)
    for rows in runs:
        values = source.read(rows).astype(np.float64)
        there = np.isfinite(values)
        totals += np.where(there, values, 0.0).sum(axis=0)
        counts += there.sum(axis=0)
        missing |= np.isnan(values).any(axis=0)
    return Gaps(means=(totals / np.maximum(counts, 1)).tolist(), marked=np.flatnonzero(missing & (counts > 0)).tolist())
