"""Coreset: greedy k-center (Sener & Savarese, 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch

from ally.features import Embedding, Representation
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.selection.nearest import Nearest
from ally.selection.shards import Pick, best, greedy, shards
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class KCenter:
    """Each pick is the candidate farthest from everything labelled or picked; its value is that distance.

    Ties go to the lowest position. Without labels the first pick is the row of largest norm, which is its value.
    """

    features: Representation = Embedding()
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True
    label_free: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        with limits.engine.crew(
            shards(snapshot, scores, limits), partial(Farthest, self.features, snapshot.labelled, n)
        ) as crew:
            positions, squared = greedy(crew, n, best)
        return picked(snapshot, torch.from_numpy(positions), torch.from_numpy(squared).sqrt())


class Farthest(Nearest):
    """A shard offers its row of largest D."""

    def offer(self) -> Pick:
        return self.farthest()

    def take(self, pick: Pick) -> Pick:
        self.add(pick)
        return self.offer()
