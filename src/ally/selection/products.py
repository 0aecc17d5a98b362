r"""Lower bounds on distances between many rows and many centres, from matrix products in single precision.

With u = 2⁻²⁴, whatever the order of summation, ‖x‖² + ‖c‖² − 2⟨x, c⟩ computed in single precision is off by less than
(C + d + 24) u (‖x‖² + ‖c‖²). Norms reduced by that share give a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ally.selection.scans import Double, Real, Single

UNDERFLOW = 1e-34
"""More than products of numbers up to 1 lose to underflow."""


@dataclass(frozen=True, eq=False)
class Frame32:
    """Rows minus `mean` (d,), with factors scaled by powers of two to a length of at most 1."""

    mean: Double
    left: float
    right: float

    @property
    def area(self) -> float:
        """The factor that bounds are multiplied by."""
        return (self.left * self.right) ** -2


@dataclass(frozen=True, eq=False)
class ProductSingles:
    """Rows in single precision, and their squared norms minus a margin."""

    left: torch.Tensor
    right: torch.Tensor
    norms: torch.Tensor

    def lower(self, others: ProductSingles) -> Single:
        """Lower bounds on the squared distances, (len(self), len(others))."""
        inner = self.right @ others.right.T
        if self.left.shape[1]:
            inner *= self.left @ others.left.T
        bounds: Single = inner.mul_(-2.0).add_(self.norms[:, None]).add_(others.norms).numpy()
        return bounds


def unit(length: float) -> float:
    """The power of two that scales `length` to between 1/2 and 1, within limits."""
    return math.ldexp(1.0, -min(max(math.frexp(length)[1], -250), 250))


def singles(left: Real, right: Real, seen: Frame32) -> ProductSingles:
    """left (m, C), C = 0 for rows of one factor, and right (m, d)."""
    a, h = (
        torch.from_numpy(x).float() for x in (left.astype(np.float64) * seen.left, (right - seen.mean) * seen.right)
    )
    norms = h.double().square().sum(1)
    if a.shape[1]:
        norms *= a.double().square().sum(1)
    margin = 1.01 * (a.shape[1] + h.shape[1] + 24) * 2.0**-24
    return ProductSingles(a, h, ((1.0 - margin) * norms - UNDERFLOW).float())
