"""The n highest scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest, picked
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class Top:
    """Ties go to the lowest row."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = False

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        best = largest(scores, n)
        return picked(snapshot, best, scores[best])
