r"""D of every row of a shard, and the scan that lowers it.

D_i = min_s ‖g_i − c_s‖² over the centres so far; the owner of i is the earliest s that attains it. Besides the rows, a
shard keeps D, the owner, a sketch and, for rows of two factors, a length: 48 bytes per row.

A scan computes few distances and misses none that would lower D. Four lower bounds let it skip a row:

- the distance of its sketch to the centre's (`sketch`);
- for many centres at once, a matrix product in single precision (`products`);
- the triangle inequality: if s owns i and ‖c − c_s‖² ≥ 4 D_i, then ‖g_i − c‖ ≥ ‖c − c_s‖ − ‖g_i − c_s‖ ≥ ‖g_i − c_s‖.
- for rows of two factors, a bound from the first factors and the lengths of the second (`scans.first_factor_bound`).

All of them leave a margin for rounding. A computed distance is a float64 sum over one row, so neither the bounds nor
the number of shards change a bit of D.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ally.data import BLOCK
from ally.errors import NonFiniteInput
from ally.features.product import OVERFLOW
from ally.neighbours.loops import Doubles
from ally.neighbours.screening import SingleFrame, find_scale
from ally.selection.arrays import Arrays
from ally.selection.scans import NUMBERS, Double, Int, Long, Single, approach, distances_to, survey, weigh
from ally.selection.sketch import SHARE, frame

Bounds: TypeAlias = Literal["sketches", "products", "none"]
NO_REACH = np.empty(0)
NO_BOUNDS, NO_LENGTHS = np.empty((0, 0), np.float32), np.empty(0, np.float32)


class Screen(NamedTuple):
    """A lower bound and its margin, see `scans.approach`."""

    screened: bool
    lowers: Single
    area: float
    grow: float
    slack: float


class Field:
    """The rows of a shard, seen from up to `centres` centres. Before the first, D is the largest float64."""

    def __init__(self, rows: Arrays, centres: int) -> None:
        size, blocks = len(rows.h), -(-len(rows.h) // BLOCK)
        self.rows = rows
        self._frame = frame(*(factor.astype(np.float64) for factor in rows.read(slice(0, size, max(1, size // BLOCK)))))
        self._sketches = np.zeros((blocks, NUMBERS, BLOCK), np.float32)
        self._lengths = np.zeros(size if rows.a.shape[1] else 0, np.float32)
        self._largest = np.zeros(4)
        self.longest = self._survey(rows, self._sketches, self._lengths)
        """The first row of largest norm."""
        self.largest_norm = float(self._largest[2])
        """Its squared norm."""
        self.near = np.full(size, np.finfo(np.float64).max)
        """(n,) D."""
        self.owner: Int = np.zeros(size, np.int32)
        """(n,)"""
        self.peaks = np.full(blocks, np.finfo(np.float64).max)
        """(blocks,) the largest D of each block."""
        self.scale = 0.0
        """The weight of a row is ⌊D · scale⌋."""
        self.totals: Long = np.zeros(blocks, np.int64)
        """(blocks,) the weight of each block."""
        self.sums: Long = np.zeros(centres, np.int64)
        """(centres,) the weight of the rows of each owner."""

    def weigh(self, scale: float) -> None:
        """Changes the scale of the weights."""
        self.scale = scale
        weigh(self.near, self.owner, scale, BLOCK, self.totals, self.sums)

    def scan(self, centres: Arrays, first: int, by: Bounds, reach: Double = NO_REACH) -> Long:
        """Adds centres number `first`, first + 1, …; a centre becomes the owner of rows that are nearer to it than D.

        `reach` (first,) is for a single centre: the D up to which rows of each owner are skipped. Returns how many rows
        (times centres) were considered, how many were left after `by`, and how many of those after `reach`; the last
        were computed.
        """
        sketches, counts = np.empty((1, NUMBERS, len(centres.h)), np.float32), np.zeros(3, np.int64)
        self._survey(centres, sketches, NO_LENGTHS)
        if by == "products":
            seen = self._single_frame()
            theirs = seen.singles(read_factors(centres, slice(None)))
            for block in range(len(self.peaks)):
                mine = seen.singles(read_factors(self.rows, slice(block * BLOCK, (block + 1) * BLOCK)))
                screen = Screen(True, theirs.bound_pairs(mine), seen.scale**-2, 1.0 + self._roundoff, 0.0)
                self._lower(slice(block, block + 1), centres, sketches[0], first, screen, reach, counts)
        else:
            slack = self._frame.slack(2.0 * math.sqrt(self._largest[3]))
            screen = Screen(by == "sketches", NO_BOUNDS, self._frame.area, 1.0 + 2.0 * SHARE, slack)
            self._lower(slice(0, len(self.peaks)), centres, sketches[0], first, screen, reach, counts)
        return counts

    def reach(self, centre: Arrays, groups: list[Arrays]) -> Double:
        """‖c − c_s‖² / 4 for the centres s of all groups, minus a margin for rounding."""
        squared = np.empty(sum(len(group.h) for group in groups))
        start = 0
        for group in groups:
            distances_to(*group, centre.a[0], centre.h[0], squared[start : start + len(group.h)])
            start += len(group.h)
        reach: Double = (squared - 5.0 * self._error) / (4.0 * (1.0 + self._roundoff))
        return reach

    def _lower(
        self, blocks: slice, centres: Arrays, sketches: Single, first: int, screen: Screen, reach: Double, counts: Long
    ) -> None:
        rows = slice(blocks.start * BLOCK, blocks.stop * BLOCK)
        approach(
            *self.rows.part(rows),
            self._sketches[blocks],
            self._lengths[rows],
            *centres,
            sketches,
            first,
            screen.screened,
            screen.lowers,
            screen.area,
            screen.grow,
            screen.slack + 2.0 * self._error,
            reach,
            2.0 * self._error,
            self.near[rows],
            self.owner[rows],
            self.scale,
            self.peaks[blocks],
            self.totals[blocks],
            self.sums,
            counts,
        )

    def _survey(self, rows: Arrays, sketches: Single, lengths: Single) -> int:
        """Writes the sketches of rows or centres; returns the first of largest norm."""
        seen, largest = self._frame, np.empty(4)
        longest = survey(*rows, seen.mean, seen.u, seen.v, seen.unit, sketches, lengths, largest)
        if not largest[2] <= min(float(np.finfo(rows.h.dtype).max), 2.0**1000):
            raise NonFiniteInput(OVERFLOW)
        np.maximum(self._largest, largest, out=self._largest)
        return longest

    def _single_frame(self) -> SingleFrame:
        left, right, _, centred = (find_scale(math.sqrt(square)) for square in self._largest)
        return SingleFrame(None, (left, right)) if self.rows.a.shape[1] else SingleFrame(self._frame.mean, (centred,))

    @property
    def _roundoff(self) -> float:
        """An upper bound on the error of a sum over a row, relative to the sum of its terms' magnitudes."""
        return 8.0 * float(self.rows.a.shape[1] + self.rows.h.shape[1] + 16) * 2.0**-53

    @property
    def _error(self) -> float:
        """An upper bound on the error of a squared distance between rows of two factors: its terms may cancel, and add
        up to at most 16 max‖a‖² max‖h‖²."""
        return 16.0 * self._roundoff * float(self._largest[0] * self._largest[1]) if self.rows.a.shape[1] else 0.0


def read_factors(rows: Arrays, some: slice) -> Doubles:
    """The factors of some rows in double precision."""
    left, right = (factor.astype(np.float64) for factor in rows.read(some))
    return (left, right) if left.shape[1] else (right,)
