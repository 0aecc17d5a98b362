"""Points linked with their nearest neighbours."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ally.neighbours import ArrayRows, Neighbours, find_nearest
from ally.neighbours.loops import Double, Ints, Single
from ally.types import AnyArray, IntArray

SHARE = 0.5
"""A graph of which more than this share has changed is built anew."""
LEAST_WEIGHT = 1e-6
"""A link that is far longer than most weighs this much, so that no product of weights is lost to underflow."""


class NeighbourGraph:
    """Points (n, d) as `sort_points` returns them, and up to `most` neighbours of each.

    `before` is a graph of some of the points, and perhaps of others, which saves most of the work where few have
    changed. The result is the same without it. Memory: 12 bytes for each of n × `most` links, and the points.
    """

    def __init__(self, points: Single, most: int, before: NeighbourGraph | None = None) -> None:
        self.points = points
        self.most = max(0, min(most, len(points) - 1))
        if before is None or before.most != self.most or before.points.shape[1] != points.shape[1]:
            self.neighbours = _link_points(points, np.arange(len(points)), self.most)
        else:
            self.neighbours = _update_links(points, self.most, before)

    @classmethod
    def of(cls, points: Single, neighbours: Neighbours) -> NeighbourGraph:
        """A graph that was built before."""
        graph = cls.__new__(cls)
        graph.points, graph.most, graph.neighbours = points, neighbours.numbers.shape[1], neighbours
        return graph

    def search(self, which: IntArray) -> Neighbours:
        """The neighbours of the points at positions `which`, searched again."""
        return _link_points(self.points, which, self.most)

    def __len__(self) -> int:
        return len(self.points)

    def width(self, k: int, share: float = 1.0) -> float:
        """A share of the median squared distance to the k nearest: where the weight of a link has fallen to 1/e."""
        squared = self.neighbours.squared[:, : min(k, self.most)]
        return share * float(np.median(squared)) if squared.size else 1.0

    def links(self, k: int, share: float = 1.0) -> csr_array:
        """Weights exp(−d²/width) between every point and its k nearest, the same in both directions, (n, n)."""
        count = min(k, self.most)
        weights = weigh(self.neighbours.squared[:, :count], self.width(k, share))
        starts = np.arange(0, weights.size + 1, max(1, count), dtype=np.int32)[: len(self) + 1]
        columns = np.ascontiguousarray(self.neighbours.numbers[:, :count]).ravel()
        one_way = csr_array(
            (weights.ravel(), columns, starts if count else np.zeros(len(self) + 1, np.int32)), (len(self),) * 2
        )
        return one_way.maximum(one_way.T).tocsr()

    def smoother(self, k: int, share: float = 1.0) -> csr_array:
        """D^(−1/2) W D^(−1/2) of the links W with sums D: symmetric, with no eigenvalue beyond 1."""
        links = self.links(k, share)
        links.sort_indices()
        sums = links.sum(axis=1)
        roots = np.sqrt(np.where(sums > 0, sums, 1.0))
        links.data /= np.repeat(roots, np.diff(links.indptr)) * roots[links.indices]
        return links

    def number_parts(self, k: int) -> Ints:
        """(n,) the number of the connected part that a point belongs to."""
        return connected_components(self.links(k), directed=False)[1]

    def interpolate(self, rows: Single, k: int, share: float = 1.0) -> csr_array:
        return interpolate(self.points, rows, k, self.width(k, share))


def sort_points(points: Single) -> Single:
    """The distinct points, in an order that depends on their values alone. −0 and 0 are the same."""
    points = np.ascontiguousarray(points, dtype=np.float32) + np.float32(0.0)
    return points[np.unique(_view_keys(points), return_index=True)[1]]


def _view_keys(points: Single) -> AnyArray:
    """(n,) the bytes of each point."""
    return points.view(np.dtype((np.void, points.dtype.itemsize * points.shape[1]))).ravel()


def _link_points(points: Single, which: IntArray, most: int) -> Neighbours:
    """The `most` other points nearest to those at positions `which`."""
    rows = ArrayRows(points)
    return find_nearest(ArrayRows(points[which]), rows, most, (which, np.arange(len(points))))


def _update_links(points: Single, most: int, before: NeighbourGraph) -> Neighbours:
    """Links of a graph some of whose points are there `before`: a point that lost a neighbour is searched again, and
    the others only look among the added points."""
    _, now, earlier = np.intersect1d(
        _view_keys(points), _view_keys(before.points), assume_unique=True, return_indices=True
    )
    places = np.full(len(before), -1, np.int32)
    places[earlier] = now
    numbers = places[before.neighbours.numbers[earlier]]
    whole = (numbers >= 0).all(axis=1)
    kept, numbers, squared = now[whole], numbers[whole], before.neighbours.squared[earlier[whole]]
    added = np.setdiff1d(np.arange(len(points)), now, assume_unique=True)
    rest = np.setdiff1d(np.arange(len(points)), kept, assume_unique=True)
    if len(rest) > SHARE * len(points):
        return _link_points(points, np.arange(len(points)), most)
    found = Neighbours(np.empty((len(points), most), np.int32), np.empty((len(points), most)))
    found.numbers[rest], found.squared[rest] = _link_points(points, rest, most)
    if len(added):
        nearest = find_nearest(ArrayRows(points[kept]), ArrayRows(points[added]), min(most, len(added)))
        numbers = np.concatenate([numbers, added[nearest.numbers]], axis=1)
        squared = np.concatenate([squared, nearest.squared], axis=1)
        order = np.lexsort((numbers, squared), axis=1)[:, :most]
        numbers, squared = np.take_along_axis(numbers, order, axis=1), np.take_along_axis(squared, order, axis=1)
    found.numbers[kept], found.squared[kept] = numbers, squared
    return found


def interpolate(points: Single, rows: Single, k: int, width: float) -> csr_array:
    """(m, n): the k of points (n, d) nearest to rows (m, d), by weights that sum to 1; a copy of a point is that point
    alone."""
    found = find_nearest(ArrayRows(rows), ArrayRows(points), max(1, min(k, len(points))))
    weights = weigh(found.squared - found.squared[:, :1], width)
    weights[found.squared[:, 0] == 0, 1:] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    starts = np.arange(0, weights.size + 1, weights.shape[1])
    placed = csr_array((weights.ravel(), found.numbers.ravel(), starts), (len(rows), len(points)))
    placed.eliminate_zeros()
    placed.sort_indices()
    return placed


def weigh(squared: Double, width: float) -> Double:
    """exp(−d²/width), at least `LEAST_WEIGHT`."""
    return np.maximum(np.exp(-squared / width), LEAST_WEIGHT)
