"""Rows of a representation, as distances between them are computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ally.features import ProductRows
from ally.features.product import part
from ally.neighbours import find_nearest
from ally.neighbours.loops import Double, Doubles, to_double
from ally.types import IntArray


@dataclass(frozen=True, eq=False)
class Points:
    """Rows read in double precision, scaled to unit length if `unit` (rows of 0 stay 0): all of them, or those at
    positions `which` (m,)."""

    rows: ProductRows
    unit: bool = False
    which: IntArray | None = None
    scales: Double | None = None
    """(d,) what the columns of rows of one factor are then multiplied by; None for 1."""

    def __len__(self) -> int:
        return len(self.rows) if self.which is None else len(self.which)

    def at(self, which: IntArray) -> Points:
        """Some of the points. Nothing is copied until they are read."""
        return Points(self.rows, self.unit, which if self.which is None else self.which[which], self.scales)

    def __getitem__(self, some: slice | IntArray) -> Doubles:
        chosen = some if self.which is None else self.which[some]
        there = chosen if isinstance(chosen, slice) else torch.from_numpy(chosen)
        found = tuple(to_double(factor.contiguous().numpy(), self.unit) for factor in part(self.rows, there).factors)
        return found if self.scales is None else (found[0] * self.scales,)


def measure_gaps(points: Points, *groups: Points) -> Double:
    """Squared distances from each point to the nearest of all groups, (m,); infinite where there is none."""
    gaps: Double = np.min([find_nearest(points, others).squared[:, 0] for others in groups], axis=0)
    return gaps
