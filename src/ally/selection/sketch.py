r"""Sketches: a few numbers per row that make most distance computations unnecessary.

For orthonormal directions p_r the sketch of x is (⟨x, p_1⟩, …, ⟨x, p_7⟩, ‖x − Σ_r ⟨x, p_r⟩ p_r‖), and by the triangle
inequality in the rest of the space

    ‖x − c‖² ≥ ‖sketch(x) − sketch(c)‖².

Any directions work; those with the largest variance over a sample leave the least in the rest. Trained embeddings vary
in few directions. Rows of one factor are taken relative to the sample's mean. For a product a ⊗ h the directions are
products u ⊗ v of the directions of a and of h.

Sketches are kept in single precision, in units near the largest length, and clipped far beyond it (clipping never moves
two rows apart). Let δ = ρ (max‖x‖ + ‖c‖) bound the effect of rounding on the distance of two sketches. Then
(√D + δ)² ≤ (1 + t) D + (1 + 1/t) δ² for any t > 0. If a row's sketch is that far from the centre's, the centre is not
nearer to the row than D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ally.selection.scans import NUMBERS, Double
from ally.types import AnyArray

ITERATIONS = 3
SHARE = 2.0**-13
"""t"""


@dataclass(frozen=True, eq=False)
class SketchFrame:
    """How rows are sketched: subtract `mean` (d,), project on directions u (7, C) and v (7, d), multiply by `unit`."""

    mean: Double
    u: Double
    v: Double
    unit: float

    @property
    def area(self) -> float:
        """The factor that squared distances between sketches are multiplied by."""
        return self.unit**-2

    def slack(self, length: float) -> float:
        """The most that rounding adds to a squared distance between sketches, for two rows of total length `length`."""
        # The rest is the root of a difference, so its rounding error is the root of that of a sum of squares.
        root = math.sqrt((self.u.shape[1] + self.v.shape[1] + 8) * 2.0**-49)
        delta = (2.0**-22 + root) * length + 2.0**-140 / self.unit
        return (2.0 + 1.0 / SHARE) * delta * delta + 2.0**-140 * self.area


def frame(a: AnyArray, h: AnyArray) -> SketchFrame:
    """Directions of a sample of rows, in float64: a (m, C), C = 0 for rows of one factor, and h (m, d)."""
    u, v = np.zeros((NUMBERS - 1, a.shape[1])), np.zeros((NUMBERS - 1, h.shape[1]))
    plain = a.shape[1] == 0
    mean = h.mean(0) if plain else np.zeros(h.shape[1])
    lengths = np.linalg.norm(h - mean, axis=1)
    if plain:
        found = directions(h - mean)
        v[: len(found)] = found
    else:
        ours, theirs = directions(a * lengths[:, None]), directions(h * np.linalg.norm(a, axis=1)[:, None])
        spread = np.square(a @ ours.T * lengths[:, None]).sum(0)[:, None] * np.square(h @ theirs.T).sum(0)
        for r, pair in enumerate(np.argsort(-spread, axis=None, kind="stable")[: NUMBERS - 1]):
            u[r], v[r] = ours[pair // len(theirs)], theirs[pair % len(theirs)]
        lengths = lengths * np.linalg.norm(a, axis=1)
    exponent = math.frexp(float(lengths.max()))[1]
    return SketchFrame(mean, u, v, math.ldexp(1.0, -min(max(exponent, -500), 500)))


def directions(x: AnyArray) -> Double:
    """Up to 7 orthonormal directions in which the rows of x (m, d) are large, largest first: orthogonal iteration from
    a fixed start."""
    scaled = x / max(float(np.abs(x).max()), np.finfo(np.float64).tiny)
    found = np.random.default_rng(0).normal(size=(x.shape[1], min(NUMBERS - 1, x.shape[1])))
    for _ in range(ITERATIONS):
        found = np.linalg.qr(scaled.T @ (scaled @ np.linalg.qr(found).Q)).Q
    return np.ascontiguousarray(found.T)
