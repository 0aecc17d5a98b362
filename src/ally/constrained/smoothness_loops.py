"""Compiled loops over the links of a graph: how far each point is from its neighbours, and derivatives of that.

Links are compressed rows of `shares` v_ij, which sum to 1 over the neighbours j of each point i that has any. The
smoothness of point i under values f (n, c) is s_i = Σ_j v_ij ‖f_i − f_j‖².
"""

from __future__ import annotations

import numpy as np

from ally.execution.compiled import compiled
from ally.types import AnyArray, FloatArray

loop = compiled("reassoc", "nsz")


@loop
def measure(starts: AnyArray, columns: AnyArray, shares: FloatArray, f: FloatArray, out: FloatArray) -> None:
    """out (n,) ← s."""
    for i in range(len(starts) - 1):
        total = 0.0
        for place in range(starts[i], starts[i + 1]):
            j, apart = columns[place], 0.0
            for c in range(f.shape[1]):
                apart += (f[i, c] - f[j, c]) ** 2
            total += shares[place] * apart
        out[i] = total


@loop
def add_pull(
    starts: AnyArray, columns: AnyArray, shares: FloatArray, weights: FloatArray, f: FloatArray, out: FloatArray
) -> None:
    """out (n, c) += the gradient of Σ_i weights_i s_i, which is linear in f."""
    for i in range(len(starts) - 1):
        if weights[i] == 0:
            continue
        for place in range(starts[i], starts[i + 1]):
            j, force = columns[place], 2 * weights[i] * shares[place]
            for c in range(f.shape[1]):
                moved = force * (f[i, c] - f[j, c])
                out[i, c] += moved
                out[j, c] -= moved


@loop
def add_bend(
    starts: AnyArray,
    columns: AnyArray,
    shares: FloatArray,
    bends: FloatArray,
    f: FloatArray,
    direction: FloatArray,
    out: FloatArray,
) -> None:
    """out (n, c) += Σ_i bends_i ∇s_i ⟨∇s_i, direction⟩."""
    for i in range(len(starts) - 1):
        if bends[i] == 0:
            continue
        along = 0.0
        for place in range(starts[i], starts[i + 1]):
            j = columns[place]
            for c in range(f.shape[1]):
                along += shares[place] * (f[i, c] - f[j, c]) * (direction[i, c] - direction[j, c])
        for place in range(starts[i], starts[i + 1]):
            j = columns[place]
            for c in range(f.shape[1]):
                moved = 4 * bends[i] * along * shares[place] * (f[i, c] - f[j, c])
                out[i, c] += moved
                out[j, c] -= moved


@loop
def add_diagonal(
    starts: AnyArray,
    columns: AnyArray,
    shares: FloatArray,
    weights: FloatArray,
    bends: FloatArray,
    f: FloatArray,
    out: FloatArray,
) -> None:
    """out (n, c) += the diagonal of the matrix that `add_pull` and `add_bend` multiply by."""
    own = np.empty(f.shape[1])
    for i in range(len(starts) - 1):
        own[:] = 0.0
        for place in range(starts[i], starts[i + 1]):
            j, share = columns[place], shares[place]
            for c in range(f.shape[1]):
                slope = share * (f[i, c] - f[j, c])
                own[c] += slope
                out[i, c] += 2 * weights[i] * share
                out[j, c] += 2 * weights[i] * share + 4 * bends[i] * slope**2
        for c in range(f.shape[1]):
            out[i, c] += 4 * bends[i] * own[c] ** 2
