"""Sources that other processes read: cut into runs of rows of which each process takes what it needs, or opened there
by the path of their file."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ally.data.base import BLOCK, Source
from ally.types import AnyArray, IntArray

RUN_BYTES = 2**24
"""About how much is sent at a time, as float32."""
OPEN = 2
"""How many runs a process keeps in memory."""


class Carried(Source):
    """A source in runs of rows that are fetched when they are read. `runs` give sources; `edges` (runs + 1,) say where
    each begins and ends."""

    def __init__(self, source: Source, runs: Sequence[Callable[[], Source]], edges: IntArray) -> None:
        self._runs, self._edges, self._shape = runs, edges, source.shape
        self._open: dict[int, Source] = {}
        self._columns = [source.column(number) for number in range(source.shape[0])] if len(source.shape) == 1 else None
        self.numeric, self.sparse, self.vectors = source.numeric, source.sparse, source.vectors

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def __len__(self) -> int:
        return int(self._edges[-1])

    def read(self, rows: IntArray) -> AnyArray:
        found: AnyArray = self._gather(rows, lambda source, some: source.read(some), np.concatenate)
        return found

    def take(self, rows: IntArray) -> Any:
        return self._gather(rows, lambda source, some: source.take(some), _joined)

    def column(self, number: int) -> str:
        return self._columns[number] if self._columns else str(number)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}

    def _gather(self, rows: IntArray, read: Callable[[Any, IntArray], Any], join: Callable[[list[Any]], Any]) -> Any:
        """Ascending rows run by run; others in their own order, one stretch of a run after the other."""
        number = np.searchsorted(self._edges, rows, side="right") - 1
        cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(rows)] if len(rows) else [0, 0]
        parts = [
            read(self._run(int(number[first]) if last > first else 0), rows[first:last] - self._first(number, first))
            for first, last in pairwise(cuts)
        ]
        return parts[0] if len(parts) == 1 else join(parts)

    def _first(self, number: IntArray, place: int) -> int:
        return int(self._edges[number[place]]) if len(number) else 0

    def _run(self, number: int) -> Source:
        if number not in self._open:
            if len(self._open) >= OPEN:
                del self._open[next(iter(self._open))]
            self._open[number] = self._runs[number]()
        return self._open[number]


def _joined(parts: list[Any]) -> Any:
    import pandas as pd
    import scipy.sparse

    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts)
    return scipy.sparse.vstack(parts, format="csr") if scipy.sparse.issparse(parts[0]) else np.concatenate(parts)


def carried(source: Source, share: Callable[[Any], Callable[[], Any]]) -> Source:
    """The source for processes elsewhere. Memory maps and sources that cannot be cut go as they are; `share` sends a
    value once."""
    if source.by_path or not source.divisible:
        return source
    step = max(1, RUN_BYTES // (4 * max(1, math.prod(source.shape)) * BLOCK)) * BLOCK
    edges = np.asarray([*range(0, len(source), step), len(source)])
    runs = [share(source.part(slice(first, last))) for first, last in pairwise(edges.tolist())]
    return Carried(source, runs, edges)


class FileMap(NamedTuple):
    """An array in a file, by path: what is pickled of a memory map."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    """The offset of its first number in the file."""

    def open(self) -> AnyArray:
        raw = np.memmap(self.path, dtype=np.uint8, mode="r")
        return np.ndarray(self.shape, np.dtype(self.dtype), raw, self.offset, self.strides)


def file_map(array: AnyArray) -> FileMap | None:
    """Where a memory map, or a part of one, lies; None for an array in memory."""
    root: Any = array
    while isinstance(root, np.ndarray) and not isinstance(root.base, mmap.mmap):
        root = root.base
    name = getattr(root, "filename", None)
    if name is None or array.dtype.hasobject:
        return None
    offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0] + root.offset
    return FileMap(str(name), array.dtype.str, array.shape, array.strides, int(offset))
