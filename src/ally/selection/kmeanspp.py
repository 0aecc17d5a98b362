"""k-means++ seeding, the same for any number of shards (BADGE on gradients: Ash et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from ally.execution.engine import Crew
from ally.features import Embedding, Representation
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.selection.nearest import Nearest
from ally.selection.shards import Pick, best, greedy, shard_crew
from ally.selection.weights import is_worn, scale_of, share
from ally.types import BOTH_TASKS, FloatArray, Task


@dataclass(frozen=True)
class KMeansPP:
    """The first pick has the largest norm; each next one is drawn in proportion to its squared distance to the picks
    so far, which is its value.

    When only copies of picks are left, the lowest positions follow.
    """

    features: Representation = Embedding()
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True
    label_free: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        uniforms = streams.numpy("d2 draws").random(n)
        with shard_crew(snapshot, scores, limits, partial(Weighted, self.features, None, n)) as crew:
            positions, squared = greedy(crew, n, partial(draw, crew, len(scores), uniforms))
        return picked(snapshot, torch.from_numpy(positions), torch.from_numpy(squared))


class Weight(NamedTuple):
    """A shard's message before a draw."""

    centres: int
    peak: float
    """The largest D."""
    total: int
    """The sum of the weights ⌊D · s⌋."""


class Weighted(Nearest):
    """A shard that offers its weight."""

    def offer(self) -> Weight:
        return Weight(self.count, self.peak(), self.total())

    def take(self, pick: Pick) -> Weight:
        self.add(pick)
        return self.offer()


def draw(crew: Crew, size: int, uniforms: FloatArray, offers: list[Weight]) -> Pick:
    """Draws a row with probability weight / total: first the shard, then the block, then the row. `size` is the total
    number of rows.

    If all weights are 0, this is the first pick, or only copies are left.
    """
    totals, centres = [offer.total for offer in offers], offers[0].centres
    peak = max(offer.peak for offer in offers)
    if centres and peak > 0 and is_worn(sum(totals), size):
        totals = crew.each("weigh", scale_of(peak, size))
    edges = np.cumsum(totals)
    if not edges[-1]:
        return best(crew.each("farthest"))
    weight = share(int(edges[-1]), float(uniforms[centres]))
    shard = int(np.searchsorted(edges, weight, side="right"))
    found: Pick = crew.one(shard, "at", weight - int(edges[shard]) + totals[shard])
    return found
