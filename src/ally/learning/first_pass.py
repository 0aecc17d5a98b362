"""The one pass over a pool before training. It finds the means and scales that learners standardise by, and the marks
that identify copies, in the same read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ally.data import BLOCK, Source, blocks, chunks
from ally.data.arrays.scaling import BlockSums, Moments, block_sums, origin_of, sum_up
from ally.execution.engine import Engine, Shared
from ally.types import AnyArray, IntArray, Progress

Mark = Callable[[AnyArray], AnyArray]
"""Samples (B, *shape) → numbers (B, k) that are equal for equal samples."""


@dataclass(eq=False)
class FirstPass(Source):
    """A pool as `Learner.prepared` sees it: a source whose `moments` are found once, however many learners ask.

    `sent` is the source as workers of the engine read it.
    """

    source: Source
    rows: IntArray
    chunk_size: int | None
    engine: Engine
    sent: Callable[[], Source]
    mark: Mark | None = None
    progress: Progress | None = None
    marks: AnyArray | None = None
    """(n, k) of the rows, once they were read."""
    _moments: Moments | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.resemble(self.source)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    def __len__(self) -> int:
        return len(self.source)

    def read(self, rows: IntArray) -> AnyArray:
        return self.source.read(rows)

    def column(self, number: int) -> str:
        return self.source.column(number)

    def take(self, rows: IntArray) -> Any:
        return self.source.take(rows)

    def part(self, run: slice) -> Source:
        return self.source.part(run)

    def moments(self, rows: IntArray) -> Moments | None:
        """The moments of `rows`, or None if these are not exactly the rows of the pass."""
        if rows is not self.rows:
            return None
        if self._moments is None:
            origin, found = origin_of(self.source, rows), []

            def sums() -> Iterator[BlockSums]:
                for seen in self._readings(origin):
                    found.append(seen.marks)
                    yield from seen.sums

            self._moments = sum_up(origin, sums(), len(rows))
            self.marks = None if self.mark is None else np.concatenate(found)
        return self._moments

    def _readings(self, origin: AnyArray) -> Iterator[ReadChunk]:
        """In the order of the rows. Results of workers wait here for their turn: 16 bytes per feature and block."""
        held = self.engine.holds
        parts = min(self.engine.parts(len(self.rows)), -(-len(self.rows) // BLOCK)) if held else 1
        edges = np.linspace(0, -(-len(self.rows) // BLOCK), parts + 1).astype(np.int64) * BLOCK
        runs = [self.rows[start:stop] for start, stop in itertools.pairwise(edges.tolist())]
        kind = self.source.read(self.rows[:1]).dtype
        source = self.engine.share(self.sent()) if held else lambda: self.source
        build = _ReaderOf(source, origin, self.mark, kind, self.chunk_size)
        if not held:
            worker = build(runs[0])
            while (seen := worker.step()) is not None:
                self._tell(worker.done)
                yield seen
            return
        found: list[list[ReadChunk]] = [[] for _ in runs]
        with self.engine.crew(runs, build) as crew:
            while sum(seen.rows for own in found for seen in own) < len(self.rows):
                for own, step in zip(found, crew.each("step"), strict=True):
                    own += [] if step is None else [step]
                self._tell(sum(seen.rows for own in found for seen in own))
        yield from itertools.chain.from_iterable(found)

    def _tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress("read", done, len(self.rows))


class ReadChunk(NamedTuple):
    """The contribution of a chunk of rows."""

    rows: int
    sums: list[BlockSums]
    marks: AnyArray


class Reader:
    """A worker: reads a run of rows, chunk by chunk."""

    def __init__(
        self, source: Source, rows: IntArray, origin: AnyArray, mark: Mark | None, kind: Any, chunk_size: int | None
    ) -> None:
        self._source, self._rows, self._origin, self._mark, self._kind = source, rows, origin, mark, kind
        self._chunks = chunks(len(rows), chunk_size, math.prod(source.shape))
        self.done = 0

    def step(self) -> ReadChunk | None:
        """The next chunk; None after the last."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return None
        rows = self._rows[chunk]
        values = self._source.read(rows)
        self.done = chunk.stop
        marks: list[AnyArray] = []
        if self._mark is not None:
            marks = [self._mark(values[block].astype(self._kind, copy=False)) for block in blocks(len(values))]
        sums = block_sums(self._source, values, rows, self._origin)
        return ReadChunk(len(rows), sums, np.concatenate(marks) if marks else np.empty((len(rows), 0)))


@dataclass(frozen=True, eq=False)
class _ReaderOf:
    source: Shared[Source]
    origin: AnyArray
    mark: Mark | None
    kind: Any
    chunk_size: int | None

    def __call__(self, rows: IntArray) -> Reader:
        return Reader(self.source(), rows, self.origin, self.mark, self.kind, self.chunk_size)
