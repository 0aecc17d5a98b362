"""The graph of a pool, built when it is first needed, and what labels say of each other along it."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ally.data import Source, blocks
from ally.graph import NeighbourGraph, sort_points, spread
from ally.learning.graph_file import GraphFile, KeptGraph
from ally.learning.graph_space import GraphSpace
from ally.types import AnyArray, FloatArray, IntArray

NEIGHBOURS = (5, 10, 20)
ALPHAS = (0.5, 0.8, 0.9)
"""How many neighbours a point is linked with, and how far labels spread: what is compared."""


class _Pending(NamedTuple):
    """What a graph is built from when it is first needed."""

    source: Source
    rows: IntArray
    most: int
    file: GraphFile | None
    kept: KeptGraph | None


class PoolGraph:
    """Distinct samples of a pool in a space; if there are more than `most`, those whose hashes are lowest.

    The graph does not depend on the order of the samples, and few samples more or less change little of it.

    What labels say of each other is kept (`between`), so that folds and rounds that share labels share that work.
    """

    def __init__(
        self, source: Source, rows: IntArray, space: GraphSpace, most: int, file: GraphFile | None = None
    ) -> None:
        """With a `file`, the graph that it has is brought up to date and written back; the space is then that graph's,
        as long as it fits the pool."""
        kept = None if file is None else file.read(space, len(rows))
        self.space = space if kept is None else kept.space
        self._pending: _Pending | None = _Pending(source, rows, most, file, kept)
        self._lock = threading.Lock()
        self._graph: NeighbourGraph | None = None
        self._smoothers: dict[tuple[int, float], csr_array] = {}
        self._labels: dict[tuple[int, float], _KeptLabels] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Another process gets the graph, not the pool."""
        self.build()
        return {**self.__dict__, "_lock": None, "_smoothers": {}, "_labels": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def build(self) -> NeighbourGraph:
        """The graph; the pool is read for it once."""
        with self._lock:
            if self._graph is None:
                assert self._pending is not None
                self._graph, self._pending = self._build(self._pending), None
            return self._graph

    def _build(self, pending: _Pending) -> NeighbourGraph:
        source, rows, most, file, kept = pending
        if len(rows) > most:
            keys = np.concatenate([hash_points(self.space.read(source, rows[block])) for block in blocks(len(rows))])
            _, first = np.unique(keys, return_index=True)
            rows = rows[np.sort(first[:most])]
        points = sort_points(np.concatenate([self.space.read(source, rows[block]) for block in blocks(len(rows))]))
        if kept is not None and np.array_equal(kept.graph.points, points):
            return kept.graph
        graph = NeighbourGraph(points, max(NEIGHBOURS), None if kept is None else kept.graph)
        if file is not None:
            file.write(KeptGraph(self.space, len(rows) if kept is None else kept.samples, graph))
        return graph

    def spread_labels(
        self, placed: csr_array, labels: FloatArray, k: int, alpha: float, share: float = 1.0
    ) -> FloatArray:
        """(n, c): where labels (m, c) of points that are `placed` (m, n) on the graph spread to."""
        found: FloatArray = spread(self._smoother(k, share), placed.T @ labels, (alpha,))[0]
        return found

    def relate_labels(self, points: AnyArray, k: int, share: float = 1.0) -> tuple[FloatArray, FloatArray]:
        """For each of `ALPHAS`: how much of the label of point j reaches point i, (3, m, m), nothing for i = j and for
        copies; and how much of it there is everywhere, (3, m)."""
        return self._labels.setdefault((k, share), _KeptLabels(k, share)).relate(self, points)

    def _smoother(self, k: int, share: float) -> csr_array:
        if (k, share) not in self._smoothers:
            self._smoothers[k, share] = self.build().smoother(k, share)
        return self._smoothers[k, share]


class _KeptLabels:
    """Labelled points that were related before."""

    MOST, TOGETHER = 512, 64
    """Labels that are kept, and labels that spread at a time: what takes memory are n numbers for each of those."""

    def __init__(self, k: int, share: float) -> None:
        self._k, self._share = k, share
        self._everywhere: FloatArray | None = None
        """(3, n): a smoother is symmetric, so this is what of a label at each point there is everywhere."""
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._points: list[AnyArray] = []
        self._reached = np.zeros((len(ALPHAS), 0, 0))
        self._totals = np.zeros((len(ALPHAS), 0))

    def relate(self, pool: PoolGraph, points: AnyArray) -> tuple[FloatArray, FloatArray]:
        keys = [point.tobytes() for point in points]
        new = {key: place for place, key in enumerate(keys) if key not in self._numbers}
        if len(self._numbers) + len(new) > self.MOST:
            self._forget()
            new = {key: place for place, key in enumerate(keys)}
        if new:
            self._add([*new], points[[*new.values()]], pool)
        numbers = np.asarray([self._numbers[key] for key in keys])
        return self._reached[:, numbers[:, None], numbers], self._totals[:, numbers]

    def _add(self, keys: list[bytes], points: AnyArray, pool: PoolGraph) -> None:
        graph, smoother = pool.build(), pool._smoother(self._k, self._share)
        before, after = len(self._numbers), len(self._numbers) + len(keys)
        self._numbers.update(zip(keys, range(before, after), strict=True))
        self._points += list(points)
        placed = graph.interpolate(np.stack(self._points), self._k, self._share)
        reached = np.zeros((len(ALPHAS), after, after))
        reached[:, :before, :before] = self._reached
        for start in range(before, after, self.TOGETHER):
            some = slice(start, min(start + self.TOGETHER, after))
            reached[:, :, some] = spread(smoother, placed[some].T.toarray(), ALPHAS, placed)
        reached[:, before:, :before] = reached[:, :before, before:].transpose(0, 2, 1)
        reached[:, np.arange(after), np.arange(after)] = 0.0
        self._reached = reached
        if self._everywhere is None:
            self._everywhere = spread(smoother, np.ones((len(graph), 1)), ALPHAS)[:, :, 0]
        self._totals = np.stack([placed @ share for share in self._everywhere])


def hash_points(points: AnyArray) -> AnyArray:
    """(n,) 64 bits of each point (n, d), float32; −0 and 0 are the same."""
    words = (np.ascontiguousarray(points) + np.float32(0.0)).view(np.uint32).astype(np.uint64)
    factors = np.random.default_rng(0).integers(2**64, size=words.shape[1], dtype=np.uint64) | np.uint64(1)
    keys: AnyArray = words @ factors
    keys ^= keys >> np.uint64(32)
    keys *= np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(29)
    return keys
