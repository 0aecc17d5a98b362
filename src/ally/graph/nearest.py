r"""Exact nearest neighbours: screened by matrix products in single precision, decided in double precision.

With u = 2⁻²⁴ and points of d numbers, whatever the order of summation,

    | (‖x‖² + ‖z‖² − 2⟨x, z⟩ in single precision) − ‖x − z‖² | ≤ (d + 24) u (‖x‖² + ‖z‖²),

so norms reduced by that share give a lower bound on the distance, and only pairs whose bound is small are computed. The
result is that of one loop over all pairs, for any number of threads and however many rows are asked about at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ally.graph.loops import Double, Ints, Single, keep_nearest

ROWS = 1024
"""Rows and points of one matrix product."""
ROUNDOFF = 1.01 * 2.0**-24
UNDERFLOW = 1e-34
"""More than products of numbers up to 1 lose to underflow."""


class Neighbours(NamedTuple):
    """The k nearest points of each of m rows, the nearest first; of equal distances the lowest number first."""

    numbers: Ints
    """(m, k)."""
    squared: Double
    """(m, k) squared distances."""


class NearestPoints:
    """Points (n, d) in single precision, ready to be searched. Takes as much memory again as the points."""

    def __init__(self, points: Single) -> None:
        self.points = np.ascontiguousarray(points, dtype=np.float32)
        self._centre = self.points[:ROWS].astype(np.float64).mean(axis=0)
        longest = max((float(_lengths(block, self._centre).max()) for block in _blocks(self.points)), default=0.0)
        self._scale = 2.0 ** -np.ceil(np.log2(longest)) if longest > 0 else 1.0
        self._shifted = np.empty_like(self.points)
        self._norms = np.empty(len(self.points), np.float32)
        for start in range(0, len(self.points), ROWS):
            some = slice(start, start + ROWS)
            self._shifted[some], self._norms[some] = self._shift(self.points[some])

    def __len__(self) -> int:
        return len(self.points)

    def find(self, rows: Single, k: int, themselves: Ints | None = None) -> Neighbours:
        """The k nearest points of rows (m, d); `themselves` (m,) are the points that the rows are, to be left out."""
        themselves = np.full(len(rows), -1, np.int32) if themselves is None else themselves
        numbers, squared = np.full((len(rows), k), -1, np.int32), np.full((len(rows), k), np.inf)
        # Taking memory for every product would take longer than the products.
        room = np.empty(ROWS * ROWS, np.float32)
        for start in range(0, len(rows), ROWS):
            some = slice(start, start + ROWS)
            block = np.ascontiguousarray(rows[some], dtype=np.float32)
            shifted, norms = self._shift(block)
            for first in range(0, len(self.points), ROWS):
                others = slice(first, first + ROWS)
                norms_there = self._norms[others]
                products = room[: len(block) * len(norms_there)].reshape(len(block), len(norms_there))
                np.matmul(shifted, self._shifted[others].T, out=products)
                keep_nearest(
                    squared[some],
                    numbers[some],
                    products,
                    norms,
                    norms_there,
                    self._scale**2,
                    block,
                    self.points[others],
                    first,
                    themselves[some],
                )
        return Neighbours(numbers, squared)

    def _shift(self, rows: Single) -> tuple[Single, Single]:
        """Rows around the centre, scaled to a length of about 1 or less, and their squared norms less a margin."""
        shifted = (self._scale * (rows - self._centre)).astype(np.float32)
        norms = np.square(shifted.astype(np.float64)).sum(axis=1)
        margin = ROUNDOFF * (rows.shape[1] + 24)
        return shifted, ((1.0 - margin) * norms - UNDERFLOW).astype(np.float32)


def _blocks(points: Single) -> list[Single]:
    return [points[start : start + ROWS] for start in range(0, len(points), ROWS)]


def _lengths(rows: Single, centre: Double) -> Double:
    return np.asarray(np.sqrt(np.square(rows - centre).sum(axis=1)))
