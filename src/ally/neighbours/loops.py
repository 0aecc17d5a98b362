"""Compiled loops over pairs of rows. They share a file, since a compiled loop is not built again when another file
changes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ally.execution.compiled import compiled

Double: TypeAlias = NDArray[np.float64]
Single: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Doubles: TypeAlias = tuple[Double, ...]
"""Factors of rows, each (m, d_f)."""

WORD = 8
"""Pairs passed over at once."""
TARGETS = 32
"""So many rows stay in the cache while others pass by."""
NEARER = 1.0 - 1e-12
"""A copy of a centre is not nearer than the centre, even if loops were compiled to add up in different orders."""


loop = compiled("reassoc", "nsz", "nnan")
"""Sums over a row may be vectorised."""


@loop
def squared_distance(x: Doubles, i: int, z: Doubles, j: int) -> float:
    """‖x_i − z_j‖². For products of factors it is found from inner products, less a margin of rounding, so that copies
    are at 0."""
    if len(x) == 1:
        a, b = x[0], z[0]
        total = 0.0
        for c in range(a.shape[1]):
            apart = a[i, c] - b[j, c]
            total += apart * apart
        return total
    inner, x_norm, z_norm = 1.0, 1.0, 1.0
    for f in range(len(x)):
        a, b = x[f], z[f]
        both, left, right = 0.0, 0.0, 0.0
        for c in range(a.shape[1]):
            both += a[i, c] * b[j, c]
            left += a[i, c] * a[i, c]
            right += b[j, c] * b[j, c]
        inner *= both
        x_norm *= left
        z_norm *= right
    return max((1.0 - 1e-15) * (x_norm + z_norm) - 2.0 * inner, 0.0)


@loop
def to_double(rows: NDArray[Any], unit: bool) -> Double:
    """(m, d) in double precision, of unit length if `unit`; rows of 0 stay 0."""
    out = np.empty(rows.shape, np.float64)
    for i in range(rows.shape[0]):
        total = 0.0
        for c in range(rows.shape[1]):
            value = np.float64(rows[i, c])
            out[i, c] = value
            total += value * value
        if unit and total > 0.0:
            length = np.sqrt(total)
            for c in range(rows.shape[1]):
                out[i, c] /= length
    return out


@loop
def to_single(rows: Double, centre: Double, scale: float, norms: Double) -> Single:
    """scale · (rows − centre) in single precision, (m, d); its squared norms are multiplied into `norms` (m,)."""
    out = np.empty(rows.shape, np.float32)
    for i in range(rows.shape[0]):
        total = 0.0
        for c in range(rows.shape[1]):
            value = np.float32(scale * (rows[i, c] - centre[c]))
            out[i, c] = value
            total += np.float64(value) * np.float64(value)
        norms[i] *= total
    return out


@loop
def to_sketch(rows: Double, centre: Double, scale: float, axes: Double, norms: Double) -> Single:
    """Of y = scale · (rows − centre) the coordinates along the r axes, and the length of what is left, (m, r + 1); ‖y‖²
    into `norms`."""
    out = np.empty((rows.shape[0], axes.shape[0] + 1), np.float32)
    moved = np.empty(rows.shape[1], np.float64)
    for i in range(rows.shape[0]):
        total = 0.0
        for c in range(rows.shape[1]):
            moved[c] = scale * (rows[i, c] - centre[c])
            total += moved[c] * moved[c]
        norms[i] = total
        for r in range(axes.shape[0]):
            along = 0.0
            for c in range(rows.shape[1]):
                along += moved[c] * axes[r, c]
            out[i, r] = np.float32(along)
            total -= along * along
        out[i, axes.shape[0]] = np.float32(np.sqrt(max(total, 0.0)))
    return out


@loop
def longest(rows: Doubles) -> Double:
    """The largest length of each factor."""
    found = np.zeros(len(rows))
    for f in range(len(rows)):
        for i in range(rows[f].shape[0]):
            total = 0.0
            for c in range(rows[f].shape[1]):
                total += rows[f][i, c] * rows[f][i, c]
            found[f] = max(found[f], np.sqrt(total))
    return found


@loop
def lower_to_row(near: Double, x: Doubles, centre: Doubles) -> None:
    """near_i ← min(near_i, ‖x_i − centre‖²), in place."""
    for i in range(len(near)):
        near[i] = min(near[i], squared_distance(x, i, centre, 0))


@loop
def keep_nearest(
    squared: Double,
    numbers: Ints,
    products: Single,
    x_norms: Single,
    z_norms: Single,
    scale2: float,
    x: Doubles,
    z: Doubles,
    first: int,
    x_marks: Longs,
    z_marks: Longs,
) -> None:
    """Takes points z, numbers `first` and on, into the nearest of each row x: `squared` and `numbers` (m, k), the
    nearest first. Pairs of one mark do not count.

    `x_norms` + `z_norms` − 2 `products` is at most `scale2` times the squared distance, so that most pairs need no
    exact one. Points come in ascending order, so that of equal distances the lowest number stays.
    """
    two, last = np.float32(2.0), squared.shape[1] - 1
    near = np.zeros(-(-len(z_norms) // WORD) * WORD, np.uint8)
    words = near.view(np.uint64)
    for i in range(len(x_norms)):
        limit = np.float32(1.00001 * scale2 * squared[i, last]) - x_norms[i]
        for j in range(len(z_norms)):
            near[j] = z_norms[j] - two * products[i, j] <= limit
        for word in range(len(words)):
            if words[word] == 0 or squared[i, last] == 0.0:
                continue
            for j in range(WORD * word, WORD * (word + 1)):
                if near[j] == 0 or x_marks[i] == z_marks[j] or z_norms[j] - two * products[i, j] > limit:
                    continue
                apart = squared_distance(x, i, z, j)
                if apart < squared[i, last]:
                    place = last
                    while place > 0 and squared[i, place - 1] > apart:
                        squared[i, place] = squared[i, place - 1]
                        numbers[i, place] = numbers[i, place - 1]
                        place -= 1
                    squared[i, place] = apart
                    numbers[i, place] = first + j
                    limit = np.float32(1.00001 * scale2 * squared[i, last]) - x_norms[i]


@loop
def add_gaussian(
    total: Double, x: Doubles, z: Doubles, near: Double, covered: Double, weights: Double, square: float
) -> None:
    """total_i += Σ_j weights_j max(0, exp(−‖x_i − z_j‖² / square) − covered_j); only a z nearer than `near_j` can
    gain."""
    for start in range(0, len(near), TARGETS):
        for i in range(len(total)):
            some = 0.0
            for j in range(start, min(start + TARGETS, len(near))):
                squared = squared_distance(x, i, z, j)
                if squared < NEARER * near[j]:
                    some += weights[j] * max(np.exp(-squared / square) - covered[j], 0.0)
            total[i] += some


@loop
def add_gaussian_pairs(
    total: Double,
    i: Ints,
    j: Ints,
    x: Doubles,
    z: Doubles,
    near: Double,
    covered: Double,
    weights: Double,
    square: float,
) -> None:
    """As `add_gaussian`, but for rounding, if (i, j) are all pairs that can gain."""
    for pair in range(len(i)):
        squared, at = squared_distance(x, i[pair], z, j[pair]), j[pair]
        if squared < NEARER * near[at]:
            total[i[pair]] += 1.000001 * weights[at] * max(np.exp(-squared / square) - covered[at], 0.0)


@loop
def add_gaussian_bound(
    total: Double,
    products: Single,
    x_norms: Single,
    z_norms: Single,
    covered: Single,
    weights: Single,
    rate: np.float32,
) -> None:
    """At least what `add_gaussian` adds, as long as rate ‖·‖² is at most log₂ e / square times the squared distance.

    2^y is a polynomial on [0, 1) and the bits of an exponent; factors above 1 make up for what is rounded on the way.
    """
    two, up = np.float32(2.0), np.float32(1.00002)
    for i in range(len(total)):
        some = np.float32(0.0)
        for j in range(len(z_norms)):
            y = rate * (two * products[i, j] - z_norms[j] - x_norms[i])
            y = max(min(y, np.float32(0.0)), np.float32(-126.0))
            whole = np.floor(y)
            part = y - whole
            power = np.float32(1.5353362e-4)
            power = power * part + np.float32(1.3398874e-3)
            power = power * part + np.float32(9.6184373e-3)
            power = power * part + np.float32(5.5503324e-2)
            power = power * part + np.float32(2.4022648e-1)
            power = power * part + np.float32(6.9314720e-1)
            power = power * part + np.float32(1.0)
            exponent = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23))
            some += weights[j] * max(up * power * exponent.view(np.float32) - covered[j], np.float32(0.0))
        total[i] += 1.00001 * some


@loop
def add_ball(total: Double, x: Doubles, z: Doubles, covered: Double, square: float) -> None:
    """total_i += the number of z_j with ‖x_i − z_j‖² ≤ square that are not covered."""
    for start in range(0, len(covered), TARGETS):
        for i in range(len(total)):
            for j in range(start, min(start + TARGETS, len(covered))):
                if covered[j] == 0.0 and squared_distance(x, i, z, j) <= square:
                    total[i] += 1.0


@loop
def add_ball_pairs(total: Double, i: Ints, j: Ints, x: Doubles, z: Doubles, covered: Double, square: float) -> None:
    """As `add_ball`, if (i, j) are all pairs that can gain."""
    for pair in range(len(i)):
        if covered[j[pair]] == 0.0 and squared_distance(x, i[pair], z, j[pair]) <= square:
            total[i[pair]] += 1.0


@loop
def add_ball_bound(
    total: Double, products: Single, x_norms: Single, z_norms: Single, covered: Single, square: np.float32
) -> None:
    """At least what `add_ball` adds."""
    two, one = np.float32(2.0), np.float32(1.0)
    for i in range(len(total)):
        some = np.float32(0.0)
        for j in range(len(z_norms)):
            inside = x_norms[i] + (z_norms[j] - two * products[i, j]) <= square
            some += one - covered[j] if inside else np.float32(0.0)
        total[i] += some


@loop
def close_pairs(products: Single, x_norms: Single, z_norms: Single, limits: Single, i_out: Ints, j_out: Ints) -> int:
    """Writes the pairs whose bound is not above the limit of their column, and says how many; −1 if there is not enough
    room."""
    two, count, ends = np.float32(2.0), 0, z_norms - limits
    near = np.zeros(-(-len(z_norms) // WORD) * WORD, np.uint8)
    words = near.view(np.uint64)
    for i in range(len(x_norms)):
        limit = -x_norms[i]
        for j in range(len(z_norms)):
            near[j] = ends[j] - two * products[i, j] <= limit
        for word in range(len(words)):
            if words[word] == 0:
                continue
            for j in range(WORD * word, WORD * (word + 1)):
                if near[j] != 0:
                    if count == len(i_out):
                        return -1
                    i_out[count], j_out[count] = i, j
                    count += 1
    return count
