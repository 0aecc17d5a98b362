"""Rows in the form that compiled loops take."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import torch

from ally.features import ProductRows
from ally.features.product import Patched
from ally.selection.scans import Int, Real


class Arrays(NamedTuple):
    """n rows a ⊗ h, or h where a has no columns."""

    a: Real
    """(n, C)"""
    places: Int
    """(n,) the entry of `a` that is replaced in each row; (0,) if none is."""
    values: Real
    """(n,) or (0,) the replacements."""
    h: Real
    """(n, d)"""

    def part(self, which: slice) -> Arrays:
        """Some of the rows, without copying."""
        return Arrays(*(array[which] for array in self))

    def read(self, which: slice) -> tuple[Real, Real]:
        """Copies of both factors of some rows, with entries replaced."""
        left = self.a[which].copy()
        if len(self.places):
            left[np.arange(len(left)), self.places[which]] = self.values[which]
        return left, self.h[which].copy()


def arrays(rows: ProductRows) -> Arrays:
    """Rows of one or two factors, without copying. With more factors, all but the last become one, (n, C₁·C₂·…)."""
    *lefts, right = rows.stored
    h = right[:]
    left, places, values = h[:, :0], torch.empty(0, dtype=torch.int32), h.new_empty(0)
    if len(lefts) == 1 and isinstance(lefts[0], Patched):
        left, places, values = lefts[0].matrix, lefts[0].places, lefts[0].values
    elif lefts:
        left = functools.reduce(
            lambda x, y: torch.einsum("nc,nd->ncd", x, y).flatten(1), [factor[:] for factor in lefts]
        )
    return Arrays(*(factor.contiguous().numpy() for factor in (left, places, values, h)))


def as_arrays(left: Real, right: Real) -> Arrays:
    """Rows without replaced entries, from factors (m, C) and (m, d)."""
    return Arrays(left, np.empty(0, np.int32), np.empty(0, left.dtype), right)
