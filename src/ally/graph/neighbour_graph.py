"""Points linked with their nearest neighbours."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ally.neighbours import ArrayRows, find_nearest
from ally.neighbours.loops import Double, Ints, Single

LEAST_WEIGHT = 1e-6
"""A link that is far longer than most weighs this much, so that no product of weights is lost to underflow."""


class NeighbourGraph:
    """Distinct points (n, d), and up to `most` neighbours of each.

    Memory: 12 bytes for each of n × `most` links, and the points.
    """

    def __init__(self, points: Single, most: int) -> None:
        self.points = points
        self.most = max(0, min(most, len(points) - 1))
        rows, themselves = ArrayRows(points), np.arange(len(points))
        self.neighbours = find_nearest(rows, rows, self.most, (themselves, themselves))

    def __len__(self) -> int:
        return len(self.points)

    def width(self, k: int) -> float:
        """The median squared distance to the k nearest: where the weight of a link has fallen to 1/e."""
        squared = self.neighbours.squared[:, : min(k, self.most)]
        return float(np.median(squared)) if squared.size else 1.0

    def links(self, k: int) -> csr_array:
        """Weights exp(−d²/width) between every point and its k nearest, the same in both directions, (n, n)."""
        count = min(k, self.most)
        weights = weigh(self.neighbours.squared[:, :count], self.width(k))
        starts = np.arange(0, weights.size + 1, max(1, count), dtype=np.int32)[: len(self) + 1]
        columns = np.ascontiguousarray(self.neighbours.numbers[:, :count]).ravel()
        one_way = csr_array(
            (weights.ravel(), columns, starts if count else np.zeros(len(self) + 1, np.int32)), (len(self),) * 2
        )
        return one_way.maximum(one_way.T).tocsr()

    def smoother(self, k: int) -> csr_array:
        """D^(−1/2) W D^(−1/2) of the links W with sums D: symmetric, with no eigenvalue beyond 1."""
        links = self.links(k)
        links.sort_indices()
        sums = links.sum(axis=1)
        roots = np.sqrt(np.where(sums > 0, sums, 1.0))
        links.data /= np.repeat(roots, np.diff(links.indptr)) * roots[links.indices]
        return links

    def number_parts(self, k: int) -> Ints:
        """(n,) the number of the connected part that a point belongs to."""
        return connected_components(self.links(k), directed=False)[1]

    def interpolate(self, rows: Single, k: int) -> csr_array:
        return interpolate(self.points, rows, k, self.width(k))


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
