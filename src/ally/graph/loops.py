"""Compiled loops over neighbours. They share a file, since a compiled loop is not built again when another file
changes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ally.execution.compiled import compiled

Single: TypeAlias = NDArray[np.float32]
Double: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int32]

WORD = 8
"""Pairs passed over at once."""

loop = compiled("reassoc", "nsz", "nnan")
"""Sums over a row may be vectorised."""


@loop
def squared_distance(a: Single, i: int, b: Single, j: int) -> float:
    """‖a_i − b_j‖² in double precision: symmetric, and 0 for copies."""
    total = 0.0
    for c in range(a.shape[1]):
        apart = np.float64(a[i, c]) - np.float64(b[j, c])
        total += apart * apart
    return total


@loop
def keep_nearest(
    squared: Double,
    index: Ints,
    products: Single,
    lower_norms: Single,
    point_norms: Single,
    area: float,
    rows: Single,
    points: Single,
    first: int,
    themselves: Ints,
) -> None:
    """Takes points number `first` and on into the nearest of each row: `squared` and `index` (m, k), the nearest first.

    `lower_norms` + `point_norms` − 2 `products` is at most `area` times the squared distance, so that most pairs need
    no exact distance. Points come in ascending order, so of equal distances the lowest number stays. `themselves` (m,)
    is the number of the point that a row is itself, which is left out; −1 for none.
    """
    two, last = np.float32(2.0), squared.shape[1] - 1
    near = np.zeros(-(-len(point_norms) // WORD) * WORD, np.uint8)
    words = near.view(np.uint64)
    for i in range(len(lower_norms)):
        limit = np.float32(min(1.00001 * area * squared[i, last], 1e30)) - lower_norms[i]
        for j in range(len(point_norms)):
            near[j] = point_norms[j] - two * products[i, j] <= limit
        for word in range(len(words)):
            if words[word] == 0:
                continue
            for j in range(WORD * word, min(WORD * (word + 1), len(point_norms))):
                if near[j] == 0 or first + j == themselves[i] or point_norms[j] - two * products[i, j] > limit:
                    continue
                apart = squared_distance(rows, i, points, j)
                if apart < squared[i, last]:
                    place = last
                    while place > 0 and squared[i, place - 1] > apart:
                        squared[i, place] = squared[i, place - 1]
                        index[i, place] = index[i, place - 1]
                        place -= 1
                    squared[i, place] = apart
                    index[i, place] = first + j
                    limit = np.float32(min(1.00001 * area * squared[i, last], 1e30)) - lower_norms[i]


@loop
def multiply_sparse(starts: Ints, columns: Ints, values: Double, dense: Double, out: Double) -> None:
    """out ← S dense, (n, c), with S (n, n) in compressed rows."""
    for i in range(len(starts) - 1):
        for c in range(dense.shape[1]):
            out[i, c] = 0.0
        for place in range(starts[i], starts[i + 1]):
            j, value = columns[place], values[place]
            for c in range(dense.shape[1]):
                out[i, c] += value * dense[j, c]
