"""Compiled loops over packed symmetric matrices, many at a time.

An array (groups, k(k+1)/2, LANES) holds the lower triangles of one k×k matrix for each row; rows are lanes, so that
every loop over a matrix is a loop over vectors. Lanes never mix: what a row gets does not depend on its neighbours. The
loops have a file of their own, since a compiled loop is not built again when another file changes.
"""

from __future__ import annotations

import numpy as np

from ally.execution.compiled import compiled
from ally.types import AnyArray, FloatArray, IntArray

LANES = 64
"""Rows that are computed together: a few vector registers of double precision."""


loop = compiled("contract", "reassoc", error_model="numpy")
"""Sums may be reordered within a row."""


@loop
def project(embeddings: AnyArray, places: IntArray, columns: FloatArray, out: FloatArray) -> None:
    """out[c, i] = ⟨columns[c], embeddings[places[i]]⟩: for a few columns, faster than to gather rows for a product of
    matrices."""
    for i in range(len(places)):
        for c in range(len(columns)):
            total = 0.0
            for j in range(columns.shape[1]):
                total += columns[c, j] * np.float64(embeddings[places[i], j])
            out[c, i] = total


@loop
def advance(q: FloatArray, g: FloatArray, p: FloatArray, projected: FloatArray, rank: int, sign: float) -> None:
    """q −= ± vvᵀ and g −= ±(tvᵀ + vtᵀ) with v = SV and t = ST; `projected` (2·k·rank, rows) holds V (k, rank) and T of
    every row.

    p (groups, k + 1, LANES) are probabilities and S is their `triangle`; of no entries, S is 1.
    """
    k = projected.shape[0] // (2 * rank)
    v, t = np.empty((k, rank, LANES)), np.empty((k, rank, LANES))
    later_v, later_t = np.empty((rank, LANES)), np.empty((rank, LANES))
    rest, size, inverse = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for i in range(len(q)):
        start = i * LANES
        for r in range(rank):
            for x in range(LANES):
                later_v[r, x], later_t[r, x] = 0.0, 0.0
        for x in range(LANES):
            rest[x] = p[i, k, x] if p.shape[1] > 0 else 0.0
        for a in range(k - 1, -1, -1):
            if p.shape[1] == 0:
                for x in range(LANES):
                    size[x], inverse[x] = 1.0, 0.0
            else:
                for x in range(LANES):
                    total = p[i, a, x] + rest[x]
                    size[x] = np.sqrt(p[i, a, x] * rest[x] / total) if total > 0.0 else 0.0
                    inverse[x] = 1.0 / rest[x] if rest[x] > 0.0 else 0.0
                    rest[x] = total
            for r in range(rank):
                for x in range(LANES):
                    v[a, r, x] = size[x] * (projected[a * rank + r, start + x] - inverse[x] * later_v[r, x])
                    t[a, r, x] = size[x] * (projected[(k + a) * rank + r, start + x] - inverse[x] * later_t[r, x])
                if p.shape[1] > 0:
                    for x in range(LANES):
                        later_v[r, x] += p[i, a, x] * projected[a * rank + r, start + x]
                        later_t[r, x] += p[i, a, x] * projected[(k + a) * rank + r, start + x]
        for a in range(k):
            for b in range(a + 1):
                m = a * (a + 1) // 2 + b
                r = 0
                while r + 3 <= rank:  # three at a time: fewer passes over q and g
                    for x in range(LANES):
                        first = (
                            v[a, r, x] * v[b, r, x] + v[a, r + 1, x] * v[b, r + 1, x] + v[a, r + 2, x] * v[b, r + 2, x]
                        )
                        left = (
                            t[a, r, x] * v[b, r, x] + t[a, r + 1, x] * v[b, r + 1, x] + t[a, r + 2, x] * v[b, r + 2, x]
                        )
                        right = (
                            v[a, r, x] * t[b, r, x] + v[a, r + 1, x] * t[b, r + 1, x] + v[a, r + 2, x] * t[b, r + 2, x]
                        )
                        q[i, m, x] -= sign * first
                        g[i, m, x] -= sign * (left + right)
                    r += 3
                while r < rank:
                    for x in range(LANES):
                        q[i, m, x] -= sign * (v[a, r, x] * v[b, r, x])
                        g[i, m, x] -= sign * (t[a, r, x] * v[b, r, x] + v[a, r, x] * t[b, r, x])
                    r += 1


@loop
def traces(q: FloatArray, g: FloatArray, sign: float, least: float, out: FloatArray) -> None:
    """tr((I ± q)⁻¹ g) of every row into `out` (rows,), by the Cholesky factor of I ± q, whose squared pivots are at
    least `least`."""
    packed = q.shape[1]
    k = int((np.sqrt(8.0 * packed + 1.0) - 1.0) / 2.0 + 0.5)
    c, y, total = np.empty((packed, LANES)), np.empty((packed, LANES)), np.empty(LANES)
    for i in range(len(q)):
        for a in range(k):
            for b in range(a + 1):
                m, pivot = a * (a + 1) // 2 + b, b * (b + 1) // 2 + b
                for x in range(LANES):
                    c[m, x] = sign * q[i, m, x]
                for e in range(b):
                    left, right = a * (a + 1) // 2 + e, b * (b + 1) // 2 + e
                    for x in range(LANES):
                        c[m, x] -= c[left, x] * c[right, x]
                if a == b:
                    for x in range(LANES):
                        c[m, x] = 1.0 / np.sqrt(max(1.0 + c[m, x], least))
                else:
                    for x in range(LANES):
                        c[m, x] *= c[pivot, x]
        for b in range(k):  # y is the inverse of the factor, whose pivots are stored inverted
            pivot = b * (b + 1) // 2 + b
            for x in range(LANES):
                y[pivot, x] = c[pivot, x]
            for a in range(b + 1, k):
                m, below = a * (a + 1) // 2 + b, a * (a + 1) // 2 + a
                for x in range(LANES):
                    total[x] = c[m, x] * y[pivot, x]
                for e in range(b + 1, a):
                    left, right = a * (a + 1) // 2 + e, e * (e + 1) // 2 + b
                    for x in range(LANES):
                        total[x] += c[left, x] * y[right, x]
                for x in range(LANES):
                    y[m, x] = -total[x] * c[below, x]
        start = i * LANES
        for x in range(LANES):
            out[start + x] = 0.0
        for a in range(k):
            for b in range(a + 1):
                m = a * (a + 1) // 2 + b
                for x in range(LANES):
                    total[x] = 0.0
                for e in range(a, k):
                    left, right = e * (e + 1) // 2 + a, e * (e + 1) // 2 + b
                    for x in range(LANES):
                        total[x] += y[left, x] * y[right, x]
                weight = 1.0 if a == b else 2.0
                for x in range(LANES):
                    out[start + x] += weight * total[x] * g[i, m, x]
