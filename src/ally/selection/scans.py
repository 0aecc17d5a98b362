"""Compiled scans over rows of one or two factors. They share a file, since a compiled loop is not built again when
another file changes.

Rows come as four arrays: `a` (n, C), the first of two factors, C = 0 where there is one; `places` and `values` (n,),
entries of `a` that are replaced (`Patched`), empty where none are; `h` (n, d), the other factor. Stored in single
precision, they are computed in double. A row's result does not depend on the rows computed before or after it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ally.execution.compiled import compiled

Real: TypeAlias = NDArray[Any]
"""float32 or float64."""
Single: TypeAlias = NDArray[np.float32]
Double: TypeAlias = NDArray[np.float64]
Int: TypeAlias = NDArray[np.int32]
Long: TypeAlias = NDArray[np.int64]

NUMBERS = 8
"""Numbers in a row's sketch: one vector register of single precision."""
CLIP = 2.0**60


loop = compiled("reassoc", "contract")
"""Sums may be reordered within a row."""


@loop
def squared_distance(
    a: Real, places: Int, values: Real, h: Real, i: int, left: Real, right: Real, right_norm: float
) -> float:
    r"""‖g_i − c‖² to the centre c = left ⊗ right, with ‖right‖² given.

    One factor: Σ(h − right)². Two: g − c = a ⊗ (h − right) + (a − left) ⊗ right, hence

        ‖a‖²‖h − right‖² + ‖a − left‖²‖right‖² + 2⟨a, a − left⟩⟨h − right, right⟩.

    Copies are at exactly 0, and rows far from the origin lose no digits.
    """
    apart, across = 0.0, 0.0
    if a.shape[1] == 0:
        for j in range(h.shape[1]):
            t = np.float64(h[i, j]) - np.float64(right[j])
            apart += t * t
        return apart
    for j in range(h.shape[1]):
        c = np.float64(right[j])
        t = np.float64(h[i, j]) - c
        apart += t * t
        across += t * c
    place = places[i] if len(places) > 0 else np.int32(-1)
    norm, change, slope = 0.0, 0.0, 0.0
    for j in range(a.shape[1]):
        x = np.float64(values[i]) if j == place else np.float64(a[i, j])
        t = x - np.float64(left[j])
        norm += x * x
        change += t * t
        slope += x * t
    return max(norm * apart + change * right_norm + 2.0 * slope * across, 0.0)


@loop
def single_distance(h: Single, i: int, right: Single) -> float:
    """Σ(h_i − right)² in single precision; within a share of (d + 4)·2⁻²³ of its value, unless it overflows."""
    total = np.float32(0.0)
    for j in range(h.shape[1]):
        t = h[i, j] - right[j]
        total += t * t
    return np.float64(total)


@loop
def first_factor_bound(
    a: Real, places: Int, values: Real, i: int, length: float, left: Real, left_norm: float, right_length: float
) -> float:
    r"""Below ‖g_i − c‖² by the first factors and the lengths of the second, ‖h_i‖ in single precision:

    ‖a‖²‖h‖² + ‖left‖²‖right‖² − 2 |⟨a, left⟩| ‖h‖ ‖right‖, less rounding.
    """
    norm, inner = 0.0, 0.0
    for j in range(a.shape[1]):
        x = np.float64(a[i, j])
        norm += x * x
        inner += x * np.float64(left[j])
    if len(places) > 0:
        x, y = np.float64(a[i, places[i]]), np.float64(values[i])
        norm += (y - x) * (y + x)
        inner += (y - x) * np.float64(left[places[i]])
    squares = norm * length * length + left_norm * right_length * right_length
    return squares * (1.0 - 2.0**-20) - 2.0 * abs(inner) * length * right_length


@loop
def squared_norm(row: Real) -> float:
    total = 0.0
    for j in range(len(row)):
        total += np.float64(row[j]) * np.float64(row[j])
    return total


@loop
def read_left(a: Real, places: Int, values: Real, i: int, out: Real) -> None:
    """a_i with its entry replaced."""
    for j in range(a.shape[1]):
        out[j] = a[i, j]
    if len(places) > 0:
        out[places[i]] = values[i]


@loop
def coordinates(left: Real, h: Real, i: int, mean: Double, u: Double, v: Double, unit: float, out: Single) -> float:
    """The sketch of g_i − mean in units of 1/unit, and its squared length: ⟨left, u_r⟩⟨h − mean, v_r⟩, then the length
    of the rest."""
    length = 0.0
    for j in range(h.shape[1]):
        t = np.float64(h[i, j]) - mean[j]
        length += t * t
    if len(left) > 0:
        length *= squared_norm(left)
    rest = length
    for r in range(NUMBERS - 1):
        inner = 0.0
        for j in range(h.shape[1]):
            inner += (np.float64(h[i, j]) - mean[j]) * v[r, j]
        if len(left) > 0:
            first = 0.0
            for j in range(len(left)):
                first += np.float64(left[j]) * u[r, j]
            inner *= first
        rest -= inner * inner
        out[r] = np.float32(min(max(inner * unit, -CLIP), CLIP))
    out[NUMBERS - 1] = np.float32(min(np.sqrt(max(rest, 0.0)) * unit, CLIP))
    return length


@loop
def survey(
    a: Real,
    places: Int,
    values: Real,
    h: Real,
    mean: Double,
    u: Double,
    v: Double,
    unit: float,
    out: Single,
    lengths: Single,
    largest: Double,
) -> int:
    """The sketches of all rows into `out` (blocks, NUMBERS, size of a block); the first row of largest ‖g‖.

    `lengths` (n,) takes ‖h‖, unless it is empty. `largest` (4,) takes the largest ‖a‖², ‖h‖², ‖g‖² and ‖g − mean‖².
    """
    left, one, best = np.empty(a.shape[1], a.dtype), np.empty(NUMBERS, np.float32), 0
    largest[:] = -1.0
    for i in range(len(h)):
        read_left(a, places, values, i, left)
        length = coordinates(left, h, i, mean, u, v, unit, one)
        for r in range(NUMBERS):
            out[i // out.shape[2], r, i % out.shape[2]] = one[r]
        first = squared_norm(left) if len(left) > 0 else 1.0
        second = squared_norm(h[i])
        if len(lengths) > 0:
            lengths[i] = np.float32(np.sqrt(second))
        largest[0], largest[1], largest[3] = max(largest[0], first), max(largest[1], second), max(largest[3], length)
        if first * second > largest[2]:
            largest[2], best = first * second, i
    return best


@loop
def distances_to(a: Real, places: Int, values: Real, h: Real, left: Real, right: Real, out: Double) -> None:
    """‖g_i − left ⊗ right‖² of the first rows, as many as `out` holds."""
    norm = squared_norm(right)
    for i in range(len(out)):
        out[i] = squared_distance(a, places, values, h, i, left, right, norm)


@loop
def lower_bounds(sketches: Single, centre: Single, out: Single) -> None:
    """Squared distances between sketches, one block."""
    for i in range(sketches.shape[1]):
        total = np.float32(0.0)
        for r in range(NUMBERS):
            t = sketches[r, i] - centre[r]
            total += t * t
        out[i] = total


@loop
def approach(
    a: Real,
    places: Int,
    values: Real,
    h: Real,
    sketches: Single,
    lengths: Single,
    ca: Real,
    cplaces: Int,
    cvalues: Real,
    ch: Real,
    csketches: Single,
    first: int,
    screened: bool,
    lowers: Single,
    area: float,
    grow: float,
    slack: float,
    reach: Double,
    error: float,
    near: Double,
    owner: Int,
    scale: float,
    peaks: Double,
    totals: Long,
    sums: Long,
    counts: Long,
) -> None:
    """Centres first, first + 1, … come one after the other; a row nearer to one than D = `near` becomes its own.

    A row is computed only if no lower bound of its distance reaches D. If `screened`, that is ``lower * area``, from
    the sketches or, of a single block, given as `lowers` (centres, rows) where it is not empty; it must reach ``D *
    grow + slack``. If `reach` is not empty, it is the triangle inequality: a row of centre s stays if D ≤ reach[s]. If
    `lengths` (n,) is not empty, rows of two factors must also pass the bound of the first one, by more than `error`.
    `counts` (3,) grows by the rows looked at, left by the first bound, and left by the second.

    Block by block, `peaks` keeps the largest D and `totals` the sum of ⌊D · scale⌋; `sums` keeps that sum by owner.
    """
    size, single = sketches.shape[2], a.shape[1] == 0 and h.itemsize == 4 and ch.itemsize == 4
    shrink = 1.0 - (h.shape[1] + 4) * 2.0**-23
    left, lower, kept = np.empty(a.shape[1], a.dtype), np.empty(size, np.float32), np.empty(size + 1, np.int64)
    sketched = np.empty(NUMBERS, np.float32)
    for block in range(len(peaks)):
        start = block * size
        rows = min(size, len(h) - start)
        D, owners = near[start : start + rows], owner[start : start + rows]
        peak_fell = False
        for q in range(len(ch)):
            left_over = rows
            if screened:
                if len(lowers) > 0:
                    lower = lowers[q]
                else:
                    for r in range(NUMBERS):
                        sketched[r] = csketches[r, q]
                    lower_bounds(sketches[block], sketched, lower)
                left_over = 0
                for i in range(rows):
                    kept[left_over] = i
                    left_over += np.int64(np.float64(lower[i]) * area < D[i] * grow + slack)
            else:
                for i in range(rows):
                    kept[i] = i
            counts[0] += rows
            counts[1] += left_over
            if len(reach) > 0:
                some, left_over = left_over, 0
                for k in range(some):
                    i = kept[k]
                    kept[left_over] = i
                    left_over += np.int64(reach[owners[i]] < D[i])
            counts[2] += left_over
            if left_over == 0:
                continue
            read_left(ca, cplaces, cvalues, q, left)
            norm = squared_norm(ch[q])
            if len(lengths) > 0:
                left_norm, length = squared_norm(left), np.sqrt(norm)
                some, left_over = left_over, 0
                for k in range(some):
                    i = kept[k]
                    kept[left_over] = i
                    bound = first_factor_bound(
                        a, places, values, start + i, np.float64(lengths[start + i]), left, left_norm, length
                    )
                    left_over += np.int64(bound < D[i] * (1.0 + 2.0**-20) + error)
            elif single:
                some, left_over = left_over, 0
                for k in range(some):
                    i = kept[k]
                    kept[left_over] = i
                    rough = np.float64(single_distance(h, start + i, ch[q]))
                    left_over += np.int64(rough * shrink <= D[i] or rough > CLIP)
            for k in range(left_over):
                i = kept[k]
                found = squared_distance(a, places, values, h, start + i, left, ch[q], norm)
                if found < D[i]:
                    before, after = np.int64(D[i] * scale), np.int64(found * scale)
                    totals[block] += after - before
                    sums[owners[i]] -= before
                    sums[first + q] += after
                    peak_fell |= D[i] == peaks[block]
                    D[i], owners[i] = found, first + q
        if peak_fell:
            peak = D[0]
            for i in range(1, rows):
                peak = max(peak, D[i])
            peaks[block] = peak


@loop
def weigh(near: Double, owner: Int, scale: float, size: int, totals: Long, sums: Long) -> None:
    """⌊D · scale⌋ summed by block and by owner, anew."""
    totals[:] = 0
    sums[:] = 0
    for i in range(len(near)):
        weight = np.int64(max(near[i], 0.0) * scale)
        totals[i // size] += weight
        sums[owner[i]] += weight


@loop
def farthest_of(near: Double, owner: Int, centre: int) -> int:
    """The first row of largest D among those of `centre`; −1 if it has none with D ≥ 0."""
    best, value = -1, -1.0
    for i in range(len(near)):
        if owner[i] == centre and near[i] > value:
            best, value = i, near[i]
    return best
