r"""k-means for pools of any size, bit for bit the same for any chunk size and number of threads.

It runs Lloyd's algorithm on a seeded sample from a greedy k-means++ start, then assigns every point to its nearest
centroid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from ally.data import blocks
from ally.execution.engine import Engine, LocalEngine
from ally.learning.held import Far, wide_fields
from ally.learning.snapshot import View
from ally.selection.centroids import GROUP, Centroids, Frame, Rows, UnitRows, row_squares
from ally.selection.seeding import seeds
from ally.types import IntArray

SAMPLE, PER_CLUSTER = 100_000, 64
"""Centroids are trained on `PER_CLUSTER` points per cluster, but at least `SAMPLE`."""
DENSE = 0.4
"""When more than this share of the bounds is stale, one product over everything is faster."""


def k_means(
    points: Rows, k: int, iterations: int, seed: int, among: IntArray | None = None, engine: Engine = LocalEngine(1)
) -> IntArray:
    """The cluster of each of the (m, d) points, or only of those at ascending positions `among`; numbers below k, some
    possibly unused.

    The sample depends on the seed alone, is drawn without replacement, and is the only copy of points that is made. The
    `engine` distributes the assignment of larger pools.
    """
    rng = np.random.default_rng(seed)
    size = len(points) if among is None else len(among)
    sample = np.arange(size)
    if size > (most := max(SAMPLE, PER_CLUSTER * k)):
        sample = np.sort(rng.choice(size, most, replace=False, shuffle=False))
    frame, x = framed(*at_hand(points, sample if among is None else among[sample]))
    members = train(x, k, iterations, rng)
    if len(x) == size:
        return members.clusters.numpy()
    worker = partial(Assigned, frame, members.centroids.means)
    held = points.rows if isinstance(points, UnitRows) else points
    if isinstance(held, Far):
        home = held.home if among is None else held.home.of(among)
        with home.guests(
            partial(_of_held, worker, held.field, isinstance(points, UnitRows)), torch.zeros(size)
        ) as crew:
            return np.concatenate(crew.each("clusters"))
    with engine.crew(parts(points, among, engine.parts(size)), worker) as crew:
        return np.concatenate(crew.each("clusters"))


def at_hand(points: Rows, rows: IntArray) -> tuple[Rows, IntArray]:
    """Local points that include those at `rows`, and their positions; points held elsewhere are fetched once."""
    if isinstance(points, UnitRows):
        inner, places = at_hand(points.rows, rows)
        return UnitRows(cast(torch.Tensor, inner)), places
    return (points[torch.from_numpy(rows)], np.arange(len(rows))) if isinstance(points, Far) else (points, rows)


def _of_held(
    worker: Callable[[PointRun], Any], field: str, unit: bool, view: View, scores: torch.Tensor, start: int
) -> Any:
    rows = wide_fields(view)[field]
    return worker(PointRun(UnitRows(rows) if unit else rows, None))


class PointRun(NamedTuple):
    """A run of points and the positions `among` them to assign; None is all."""

    points: Rows
    among: IntArray | None


def parts(points: Rows, among: IntArray | None, number: int) -> list[PointRun]:
    """Near-equal runs of the points, without copying."""
    if isinstance(points, UnitRows):
        return [
            PointRun(UnitRows(cast(torch.Tensor, part)), which) for part, which in parts(points.rows, among, number)
        ]
    edges = np.linspace(0, len(points), number + 1).astype(int).tolist()
    if among is None:
        return [PointRun(points[start:stop], None) for start, stop in pairwise(edges)]
    inside = pairwise(np.searchsorted(among, edges).tolist())
    return [
        PointRun(points[start:stop], among[slice(*which)] - start)
        for (start, stop), which in zip(pairwise(edges), inside, strict=True)
    ]


class Assigned:
    """A part of the points and the centroids they are nearest to."""

    def __init__(self, frame: Frame, means: torch.Tensor, part: PointRun) -> None:
        self._frame, self._centroids, self._part = frame, Centroids(means), part

    def clusters(self) -> IntArray:
        points, among = self._part
        result = np.empty(len(points) if among is None else len(among), dtype=np.int64)
        for run in self._centroids.runs(len(result)):
            result[run] = self._centroids.nearest(self._frame(read(points, run, among)))[0].numpy()
        return result


def read(points: Rows, run: slice, among: IntArray | None) -> torch.Tensor:
    """A run of the points, or of those at positions `among`."""
    return points[run] if among is None else points[torch.from_numpy(among[run])]


def framed(points: Rows, rows: IntArray) -> tuple[Frame, torch.Tensor]:
    """The frame around some points, and those points in it."""
    frame = Frame.around(points, rows)
    x = torch.empty(len(rows), points.shape[1] + 2)
    for block in blocks(len(rows)):
        x[block] = frame(read(points, block, rows))
    return frame, x


def train(x: torch.Tensor, k: int, iterations: int, rng: np.random.Generator) -> Members:
    """At most k clusters of points in a frame; fewer if there are fewer distinct points."""
    means = neighbours_together(x[seeds(x[:, :-2], k, rng), :-2].double())
    members = Members(x, Centroids(means))
    for _ in range(iterations):
        if not members.follow(Centroids(improved(x[:, :-2], members.clusters, len(members.centroids.means), k))):
            break
    return members


class Members:
    """The cluster of each point in a frame, (m,), maintained while the centroids move.

    For each group of centroids there is a lower bound on a point's distance to them, its own centroid left out. When
    centroids move, the bounds fall by as much. A point is measured again only where a bound falls to the distance of
    its own centroid (Yinyang k-means, Ding et al., 2015).
    """

    def __init__(self, x: torch.Tensor, centroids: Centroids) -> None:
        self.centroids = centroids
        self.clusters = torch.empty(len(x), dtype=torch.int64)
        self._x = x
        self._apart = torch.empty(0, 0)
        self._search(None)

    def follow(self, centroids: Centroids) -> bool:
        """Moves the centroids. Returns whether any point changed its cluster."""
        before, old, self.centroids = self.clusters.clone(), self.centroids, centroids
        if len(old.means) != len(centroids.means):
            self._search(None)
            return True
        own = centroids.above(self._x, before)
        self._apart.mul_(1.0 - 2.0**-22).sub_(centroids.moved_from(old.means)[:, None])
        stale = self._apart <= own
        if int(stale.sum()) > DENSE * stale.numel():
            self._search(None)
        else:
            for group, rows in enumerate(stale):
                which = rows.nonzero().squeeze(1)
                self._apart[group, which] = centroids.others(self._x.index_select(0, which), before[which], group)
            self._search((self._apart <= own).any(0).nonzero().squeeze(1))
        return not torch.equal(before, self.clusters)

    def _search(self, rows: torch.Tensor | None) -> None:
        """Searches again for the nearest centroid of `rows`; None is all."""
        for run in self.centroids.runs(len(self._x) if rows is None else len(rows)):
            which = run if rows is None else rows[run]
            x = self._x[run] if rows is None else self._x.index_select(0, rows[run])
            self.clusters[which], apart = self.centroids.nearest(x)
            if rows is None and run.start == 0:
                self._apart = torch.empty(apart.shape[1], len(self._x))
            self._apart[:, which] = apart.T


def neighbours_together(means: torch.Tensor) -> torch.Tensor:
    """Orders means by which of the first few is nearest, so that the centroids of a group are near each other."""
    frame = Frame(torch.zeros(means.shape[1], dtype=torch.float64), 1.0)
    first = Centroids(means[: -(-len(means) // GROUP)])
    return means[torch.sort(first.nearest(frame(means))[0], stable=True).indices]


def improved(x: torch.Tensor, clusters: torch.Tensor, count: int, k: int) -> torch.Tensor:
    """The means of `count` clusters. Empty or missing clusters (fewer than k) get the points farthest from their mean,
    as long as there are any."""
    means = cluster_means(x, clusters, count)
    empty = (torch.bincount(clusters, minlength=count) == 0).nonzero().squeeze(1)
    missing = k - count + len(empty)
    if missing == 0:
        return means
    squared = squared_to(x, means, clusters)
    farthest = torch.sort(squared, descending=True, stable=True).indices[:missing]
    new = torch.unique(x[farthest[squared[farthest] > 0]], dim=0).double()
    means[empty[: len(new)]] = new[: len(empty)]
    kept = torch.ones(count, dtype=torch.bool)
    kept[empty[len(new) :]] = False
    return torch.cat([means[kept], new[len(empty) :]])


def cluster_means(points: Rows, clusters: torch.Tensor, k: int, among: IntArray | None = None) -> torch.Tensor:
    """(k, d) float64, 0 for an empty cluster. Sums follow the order of the points, block by block."""
    sums = torch.zeros(k, points.shape[1], dtype=torch.float64)
    for block in blocks(len(clusters)):
        sums.index_add_(0, clusters[block], read(points, block, among).double())
    return sums / torch.bincount(clusters, minlength=k).clamp(min=1)[:, None]


def squared_to(
    points: torch.Tensor, means: torch.Tensor, clusters: torch.Tensor, among: IntArray | None = None
) -> torch.Tensor:
    """‖x − mean of its cluster‖², (m,) float64."""
    squared = torch.empty(len(clusters), dtype=torch.float64)
    for block in blocks(len(clusters)):
        squared[block] = row_squares(read(points, block, among).double() - means[clusters[block]])
    return squared
