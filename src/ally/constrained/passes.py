r"""Dual variables of samples that are visited batch by batch."""

from __future__ import annotations

import torch

from ally.constrained.multipliers import Multipliers
from ally.constrained.schedules import Power


class PassMultipliers:
    """λ of n samples, a few of which are visited at a time, some more often than others.

    A pass ends when every sample has been visited since the last one ended. λ moves at the first visit in a pass, by
    the same step for all, and is read as it was after the last complete pass. All samples have had equally many updates
    by then, so none ranks higher for one more visit. During the first pass λ is read as it is. It is NaN (unknown)
    where no constraint has been in force yet.
    """

    def __init__(self, multipliers: Multipliers, schedule: Power) -> None:
        self._multipliers = multipliers
        self._schedule = schedule
        self._moves = torch.zeros_like(multipliers.values, dtype=torch.int32)
        self._known = torch.zeros_like(multipliers.values, dtype=torch.bool)
        self._kept: torch.Tensor | None = None
        self._number = 1
        self._left = len(self._moves)

    @property
    def values(self) -> torch.Tensor:
        """λ as training uses it now, (n,)."""
        return self._multipliers.values

    def ascend(self, index: torch.Tensor, slacks: torch.Tensor, in_force: torch.Tensor) -> None:
        """Visits the samples at `index` (b,) with their slacks (b,); λ moves only where the constraint is `in_force`,
        (b,) bool."""
        due = self._moves[index] < self._number
        moved = due & in_force
        self._multipliers.ascend(index, slacks * moved, self._schedule(self._number))
        self._moves[index] = self._number
        self._known[index] |= moved
        self._left -= int(due.sum())
        if not self._left:
            self._kept, self._number, self._left = self._now(), self._number + 1, len(self._moves)

    def read(self) -> torch.Tensor:
        """λ after the last complete pass, (n,); NaN where unknown."""
        return self._now() if self._kept is None else self._kept.clone()

    def _now(self) -> torch.Tensor:
        return self.values.masked_fill(~self._known, torch.nan)
