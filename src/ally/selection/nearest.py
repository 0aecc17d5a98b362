"""A shard of candidates and the centres so far, as k-center, k-means++ and LCMD use it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from ally.data import BLOCK
from ally.features import Representation
from ally.learning.snapshot import View
from ally.selection.arrays import Arrays, arrays, as_arrays
from ally.selection.field import NO_REACH, Bounds, Field
from ally.selection.scans import Long, farthest_of
from ally.selection.shards import Pick, Shard

BATCH = 256
"""Known centres added at a time."""
REMEMBERED = 4096
"""Picks kept for the triangle inequality; later picks own few rows, all close to them."""
NOTHING = Pick(-1.0, -1, None)
Prune: TypeAlias = Literal["auto", "always", "never"]


class Nearest:
    """The centres are the samples of `known`, if given, then up to `picks` more. `prune` changes the time, not the
    result."""

    def __init__(
        self, features: Representation, known: View | None, picks: int, shard: Shard, prune: Prune = "auto"
    ) -> None:
        rows = arrays(features(shard.view))
        self._known = arrays(features(known)) if known is not None and len(known) else rows.part(slice(0, 0))
        self._picks = as_arrays(
            *(np.empty((min(picks, REMEMBERED), factor.shape[1]), factor.dtype) for factor in (rows.a, rows.h))
        )
        self._field = Field(rows, len(self._known.h) + picks)
        self._start = shard.start
        self._prune = prune
        self._sketches, self._triangle = PruneCheck(prune, share=0.5, rest=3), PruneCheck(prune, share=0.5, rest=3)
        self._left_by_sketches = len(rows.h)
        self._free = 0
        self.count = 0
        """Centres so far."""
        self._meet()

    def add(self, pick: Pick) -> None:
        """Makes the pick a centre (unless it is a copy of one). If it is one of these rows, it is no longer free."""
        if self.count == 0 or pick.value > 0:
            self._approach(as_arrays(*(factor[None] for factor in pick.row)))
        if 0 <= pick.position - self._start < len(self._field.near):
            self._field.near[pick.position - self._start] = -1.0

    def farthest(self, centre: int | None = None) -> Pick:
        """The free row with the largest D, among all rows or those of one centre. Before there are centres, the row
        with the largest norm, with its squared norm as D.

        If the largest D is 0, all free rows are copies of centres, and the first is returned. Without a free row the
        value is −1.
        """
        field = self._field
        if self.count == 0:
            return self._pick(field.longest, field.largest_norm)
        if centre is not None:
            row = farthest_of(field.near, field.owner, centre)
            return self._pick(row, float(field.near[row])) if row >= 0 else NOTHING
        block = int(field.peaks.argmax())
        if field.peaks[block] > 0:
            row = block * BLOCK + int(field.near[block * BLOCK : (block + 1) * BLOCK].argmax())
            return self._pick(row, float(field.near[row]))
        for start in range(self._free, len(field.near), BLOCK):
            free = field.near[start : start + BLOCK] >= 0
            if free.any():
                self._free = start + int(free.argmax())
                return self._pick(self._free, 0.0)
        self._free = len(field.near)
        return NOTHING

    def peak(self) -> float:
        """The largest D; 0 or less if all free rows are copies of centres."""
        return float(self._field.peaks.max())

    def weigh(self, scale: float) -> int:
        """Sets the weight of each row to ⌊D · scale⌋ and returns the sum of the weights."""
        self._field.weigh(scale)
        return self.total()

    def total(self) -> int:
        """The sum of all weights."""
        return int(self._field.totals.sum())

    def sums(self) -> Long:
        """The current total weight of each centre's rows, (centres,)."""
        return self._field.sums

    def at(self, weight: int) -> Pick:
        """The row at which the running sum of weights exceeds `weight`."""
        field, edges = self._field, self._field.totals.cumsum()
        block = int(np.searchsorted(edges, weight, side="right"))
        near = field.near[block * BLOCK : (block + 1) * BLOCK]
        inside = (near.clip(min=0.0) * field.scale).astype(np.int64).cumsum()
        row = int(np.searchsorted(inside, weight - (edges[block] - inside[-1]), side="right"))
        return self._pick(block * BLOCK + row, float(near[row]))

    def _pick(self, row: int, value: float) -> Pick:
        left, right = self._field.rows.read(slice(row, row + 1))
        return Pick(value, self._start + row, (left[0], right[0]))

    def _meet(self) -> None:
        """Adds the known centres, bounded by sketches, or by matrix products while sketches leave too many rows."""
        sketches = PruneCheck(self._prune, share=0.125, rest=7)
        for first in range(0, len(self._known.h), BATCH):
            batch = self._known.part(slice(first, first + BATCH))
            by: Bounds = "sketches" if sketches.due() else "products" if self._prune == "auto" else "none"
            looked, left, _ = self._field.scan(batch, first, by)
            if by == "sketches":
                sketches.saw(looked, left)
        self.count = len(self._known.h)

    def _approach(self, centre: Arrays) -> None:
        """Adds one centre. Uses the triangle inequality if it may save many more rows than there are centres to compare
        with."""
        by: Bounds = "sketches" if self.count and self._sketches.due() else "none"
        rows, reach = self._left_by_sketches if by == "sketches" else len(self._field.near), NO_REACH
        picks = min(self.count - len(self._known.h), len(self._picks.h))
        if self.count and self._triangle.due(rows > 4 * self.count):
            reach = np.full(self.count, -np.inf)
            reach[: len(self._known.h) + picks] = self._field.reach(
                centre, [self._known, self._picks.part(slice(0, picks))]
            )
        looked, left, computed = self._field.scan(centre, self.count, by, reach)
        if by == "sketches":
            self._left_by_sketches = int(left)
            self._sketches.saw(looked, left)
        if len(reach):
            self._triangle.saw(left, computed)
        if picks < len(self._picks.h):
            self._picks.a[picks], self._picks.h[picks] = centre.a[0], centre.h[0]
        self.count += 1


class PruneCheck:
    """Decides whether a check is worth its time: after it lets more than a `share` of the rows through, it is skipped
    `rest` times."""

    def __init__(self, prune: Prune, share: float, rest: int) -> None:
        self._prune, self._share, self._rest, self._resting = prune, share, rest, 0

    def due(self, promising: bool = True) -> bool:
        if self._prune != "auto":
            return self._prune == "always"
        self._resting = max(self._resting - 1, 0)
        return promising and self._resting == 0

    def saw(self, looked: int, left: int) -> None:
        self._resting = self._rest + 1 if left > self._share * looked else 0
