"""The graph of a pool, built when it is first needed, and what labels say of each other along it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ally.data import Source, blocks
from ally.graph import NeighbourGraph, spread
from ally.learning.graph_space import GraphSpace
from ally.types import AnyArray, FloatArray, IntArray

NEIGHBOURS = (5, 10, 20)
ALPHAS = (0.5, 0.8, 0.9)
"""How many neighbours a point is linked with, and how far labels spread: what is compared."""


class PoolGraph:
    """Distinct samples of a pool in a space; a seeded sample of them if there are more than `most`.

    What labels say of each other is kept (`between`), so that folds and rounds that share labels share that work.
    """

    def __init__(self, source: Source, rows: IntArray, space: GraphSpace, most: int) -> None:
        self.space = space
        self._pending: tuple[Source, IntArray, int] | None = (source, rows, most)
        self._lock = threading.Lock()
        self._graph: NeighbourGraph | None = None
        self._smoothers: dict[int, csr_array] = {}
        self._labels: dict[int, _KeptLabels] = {}

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
                source, rows, most = self._pending
                if len(rows) > most:
                    rows = np.sort(np.random.default_rng(0).permutation(rows)[:most])
                points = np.concatenate([self.space.read(source, rows[block]) for block in blocks(len(rows))])
                self._graph, self._pending = NeighbourGraph(_drop_copies(points), max(NEIGHBOURS)), None
            return self._graph

    def spread_labels(self, placed: csr_array, labels: FloatArray, k: int, alpha: float) -> FloatArray:
        """(n, c): where labels (m, c) of points that are `placed` (m, n) on the graph spread to."""
        found: FloatArray = spread(self._smoother(k), placed.T @ labels, (alpha,))[0]
        return found

    def relate_labels(self, points: AnyArray, k: int) -> tuple[FloatArray, FloatArray]:
        """For each of `ALPHAS`: how much of the label of point j reaches point i, (3, m, m), nothing for i = j and for
        copies; and how much of it there is everywhere, (3, m)."""
        return self._labels.setdefault(k, _KeptLabels()).relate(self, points, k)

    def _smoother(self, k: int) -> csr_array:
        if k not in self._smoothers:
            self._smoothers[k] = self.build().smoother(k)
        return self._smoothers[k]


class _KeptLabels:
    """Labelled points that were related before."""

    MOST, TOGETHER = 512, 64
    """Labels that are kept, and labels that spread at a time: what takes memory are n numbers for each of those."""

    def __init__(self) -> None:
        self._everywhere: FloatArray | None = None
        """(3, n): a smoother is symmetric, so this is what of a label at each point there is everywhere."""
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._points: list[AnyArray] = []
        self._reached = np.zeros((len(ALPHAS), 0, 0))
        self._totals = np.zeros((len(ALPHAS), 0))

    def relate(self, pool: PoolGraph, points: AnyArray, k: int) -> tuple[FloatArray, FloatArray]:
        keys = [point.tobytes() for point in points]
        new = {key: place for place, key in enumerate(keys) if key not in self._numbers}
        if len(self._numbers) + len(new) > self.MOST:
            self._forget()
            new = {key: place for place, key in enumerate(keys)}
        if new:
            self._add([*new], points[[*new.values()]], pool, k)
        numbers = np.asarray([self._numbers[key] for key in keys])
        return self._reached[:, numbers[:, None], numbers], self._totals[:, numbers]

    def _add(self, keys: list[bytes], points: AnyArray, pool: PoolGraph, k: int) -> None:
        graph, smoother = pool.build(), pool._smoother(k)
        before, after = len(self._numbers), len(self._numbers) + len(keys)
        self._numbers.update(zip(keys, range(before, after), strict=True))
        self._points += list(points)
        placed = graph.interpolate(np.stack(self._points), k)
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


def _drop_copies(points: AnyArray) -> AnyArray:
    """The first of each, in their order. −0 and 0 are the same."""
    points = np.ascontiguousarray(points) + np.float32(0.0)
    rows = points.view(np.dtype((np.void, points.dtype.itemsize * points.shape[1]))).ravel()
    return points[np.sort(np.unique(rows, return_index=True)[1])]
