"""Scores that do not look at the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class Random:
    """Uniform on [0, 1): its top b are a uniform sample without replacement."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = False

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        return Scored(torch.from_numpy(streams.numpy("random score").random(len(snapshot.candidates))))


@dataclass(frozen=True)
class Constant:
    """The same score for every candidate; the selection alone decides."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = False
    constant: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        return Scored(torch.zeros(len(snapshot.candidates), dtype=torch.float64))
