r"""Distances between rows: screened by matrix products in single precision, decided in double precision.

The squared distance between two rows is a float64 sum in a fixed order (`pairs.squared_distance`). It does not depend
on how many rows are computed at once, it is symmetric, and copies are at exactly 0. Matrix products are several times
faster, but they round. With u = 2⁻²⁴ and rows of d numbers, whatever the order of summation,

    | (‖x‖² + ‖z‖² − 2⟨x, z⟩ in single precision) − ‖x − z‖² | ≤ (d + 24) u (‖x‖² + ‖z‖²),

so norms reduced by that share give a lower bound on the distance. If the bound is already too large, the pair is done;
the few others are computed. The result is the same as that of one loop over all pairs.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ally.data import BLOCK, blocks
from ally.neighbours.loops import Double, Doubles, Single, longest, to_single, to_sketch
from ally.types import AnyArray, IntArray

ROUNDOFF = 1.01 * 2.0**-24
UNDERFLOW = 1e-34
"""More than products of numbers up to 1 lose to underflow."""
AXES = 15
"""Directions of a sketch."""


class FactorRows(Protocol):
    """Rows of one factor, or of the product of several, read in double precision."""

    @property
    def unit(self) -> bool:
        """Whether no factor of a row is longer than 1, which saves a pass over them."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, some: slice | IntArray) -> Doubles: ...


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """The rows of an array (n, d)."""

    array: AnyArray
    unit: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, some: slice | IntArray) -> Doubles:
        return (np.ascontiguousarray(self.array[some], dtype=np.float64),)


@dataclass(frozen=True, eq=False)
class Singles:
    """Rows in single precision, in a `SingleFrame`; norms_i + norms_j − 2⟨i, j⟩ is at most scale² times the squared
    distance."""

    factors: tuple[Single, ...]
    norms: Single

    def __len__(self) -> int:
        return len(self.norms)

    def products(self, others: Singles, room: Single) -> Single:
        """⟨i, j⟩, (len(self), len(others)), written into `room`, which must be large enough."""
        inner = room[: len(self) * len(others)].reshape(len(self), len(others))
        for number, (a, b) in enumerate(zip(self.factors, others.factors, strict=True)):
            if number == 0:
                np.matmul(a, b.T, out=inner)
            else:
                inner *= a @ b.T
        return inner

    def bound_pairs(self, others: Singles) -> Single:
        """At most scale² times the squared distances, (len(self), len(others))."""
        bounds = self.products(others, np.empty(len(self) * len(others), np.float32))
        bounds *= np.float32(-2.0)
        bounds += self.norms[:, None]
        bounds += others.norms
        return bounds


def find_scale(length: float) -> float:
    """The power of two that scales `length` to between 1/2 and 1, within limits."""
    return math.ldexp(1.0, -min(max(math.frexp(length)[1], -250), 250))


def make_room() -> Single:
    """A buffer for the products of two blocks. Allocating memory for every block would take as long as the products."""
    return np.empty(BLOCK * BLOCK, np.float32)


@dataclass(frozen=True, eq=False)
class SingleFrame:
    """How rows are converted to single precision: rows of one factor minus `centre` (d,), each factor times a power of
    two."""

    centre: Double | None
    scales: tuple[float, ...]
    sample: Double | None = None
    """(m, d) some of the rows, scaled; None for rows of several factors."""

    @functools.cached_property
    def axes(self) -> Double | None:
        """(r, d) orthonormal directions for sketches; None for rows of several factors or of few numbers."""
        return None if self.sample is None else find_directions(self.sample)

    @property
    def scale(self) -> float:
        """The factor that distances are multiplied by."""
        return float(np.prod(self.scales))

    def singles(self, rows: Doubles) -> Singles:
        norms = np.ones(len(rows[0]))
        factors = tuple(
            to_single(factor, np.zeros(factor.shape[1]) if self.centre is None else self.centre, scale, norms)
            for factor, scale in zip(rows, self.scales, strict=True)
        )
        margin = ROUNDOFF * sum(factor.shape[1] + 24 for factor in rows)
        return Singles(factors, ((1.0 - margin) * norms - UNDERFLOW).astype(np.float32))

    def sketches(self, rows: Doubles) -> Singles | None:
        """Singles of r + 1 numbers, no farther apart than the rows: coordinates along the axes, and the length of the
        rest.

        Trained embeddings vary in few directions, so most distances need not be computed more exactly.
        """
        if self.axes is None or self.centre is None:
            return None
        norms = np.empty(len(rows[0]))
        factor = to_sketch(rows[0], self.centre, self.scales[0], self.axes, norms)
        # The length of the rest is the root of a difference. It is off by up to √(d 2⁻⁵²) of the row's length,
        # distances by twice that, squares by more.
        margin = ROUNDOFF * (factor.shape[1] + 24) + 8.0 * np.sqrt(len(self.centre) * 2.0**-52)
        return Singles((factor,), ((1.0 - margin) * norms - UNDERFLOW).astype(np.float32))


def find_frame(*groups: FactorRows) -> SingleFrame:
    """A frame in which the points of all groups have lengths of about 1 or less, centred on the first points of the
    last group."""
    first = groups[-1][: min(BLOCK, len(groups[-1]))]
    lengths = np.ones(len(first))
    if not all(points.unit for points in groups):
        lengths = np.max([longest(points[block]) for points in groups for block in blocks(len(points))], axis=0)
    scales = tuple(find_scale(float(length)) for length in lengths)
    if len(first) > 1:
        return SingleFrame(None, scales)
    centre = first[0].mean(0)
    return SingleFrame(centre, scales, scales[0] * (first[0] - centre))


def find_directions(rows: Double) -> Double | None:
    """Roughly the directions in which (m, d) rows vary most, (AXES, d) orthonormal, by subspace iteration; None for d
    below 4 AXES."""
    if rows.shape[1] < 4 * AXES or len(rows) < AXES:
        return None
    found = np.linalg.qr(rows[:AXES].T)[0]
    for _ in range(4):
        found = np.linalg.qr(rows.T @ (rows @ found))[0]
    return np.ascontiguousarray(found.T)
