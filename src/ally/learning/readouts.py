"""Additional per-sample outputs that a strategy reads from the learner while the pool is embedded.

A score or selection lists its readouts; they are computed block by block with the embeddings and kept in
``View.readouts``, so that a pool is read once. Random readouts (dropout) are seeded by the pass and the block, and so
do not depend on the chunk size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from ally.errors import InputError
from ally.learning.learner import Fitted


class Readout(Protocol):
    """A frozen dataclass; equal readouts are computed once.

    One with ``optional = True`` says something for every learner, if only that there is nothing to read."""

    @property
    def name(self) -> str:
        """The key in ``View.readouts``."""
        ...

    @property
    def members(self) -> int:
        """How many independently trained learners it would like, given that one alone has no spread; 1 for none but
        the fit."""
        ...

    def __call__(self, fits: Sequence[Fitted], x: Any, seed: int, start: int) -> torch.Tensor:
        """(B, ...) float32 on the CPU for one block of samples, `x`, as `Fitted.inputs` gives it.

        `seed` is the same for all blocks of a pass, `start` the place of the block in it.
        """
        ...


def readouts_of(*parts: object) -> tuple[Readout, ...]:
    """The distinct readouts that the parts of a strategy ask for."""
    found: dict[str, Readout] = {}
    for part in parts:
        for readout in getattr(part, "readouts", ()):
            if found.setdefault(readout.name, readout) != readout:
                raise InputError(
                    f"{found[readout.name]} and {readout} have the same name; give different readouts different names"
                )
    return tuple(found.values())
