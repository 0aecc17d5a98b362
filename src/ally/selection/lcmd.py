"""LCMD: largest cluster, maximum distance (Holzmüller et al., 2023), in the mode where labelled samples are centres
(TP).

With S the labelled and picked samples, c(i) = argmin_{s ∈ S} ‖g_i − g_s‖ and D_i = ‖g_i − g_{c(i)}‖², the next pick is

    argmax_{i : c(i) = s*} D_i,   s* = argmax_s Σ_{i : c(i) = s} D_i.

The paper's g are sketched gradients of the whole network. Here g can be any representation. The catalogue uses
gradients of the last layer (`features.LastLayer`), in factored form and so without a sketch. For regression, their
distances equal those of the embeddings. For classification, samples that the network is sure of have gradients near 0,
and so do labelled ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from ally.execution.engine import Crew
from ally.features import Embedding, Representation
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.selection.nearest import Nearest
from ally.selection.shards import Pick, best, greedy, shard_crew
from ally.selection.weights import is_worn, scale_of
from ally.types import BOTH_TASKS, IntArray, Task


@dataclass(frozen=True)
class LCMD:
    """Each pick is the point farthest from its centre in the cluster with the largest sum of D; its value is that
    distance.

    Ties between clusters go to the earliest centre, ties between points to the lowest position. Without labels the
    first pick is the row with the largest norm. When only copies of centres are left, the lowest positions follow.
    """

    features: Representation = Embedding()
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True
    label_free: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        sums = np.zeros(len(snapshot.labelled) + n, np.int64)
        with shard_crew(snapshot, scores, limits, partial(Clusters, self.features, snapshot.labelled, n)) as crew:
            positions, reach = greedy(crew, n, partial(farthest_of_largest, crew, len(scores), sums))
        return picked(snapshot, torch.from_numpy(positions), torch.from_numpy(reach).sqrt())


class AfterPick(NamedTuple):
    """A shard's message after a pick."""

    centres: int
    peak: float
    """The largest D."""
    which: IntArray
    """(m,) centres whose sums of weights ⌊D · s⌋ have changed,"""
    by: IntArray
    """(m,) and by how much."""


class Clusters(Nearest):
    """A shard that offers the changes in the sums of its clusters."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._said = np.zeros_like(self.sums())

    def offer(self) -> AfterPick:
        change = self.sums() - self._said
        which = np.flatnonzero(change)
        self._said[which] += change[which]
        return AfterPick(self.count, self.peak(), which, change[which])

    def take(self, pick: Pick) -> AfterPick:
        self.add(pick)
        return self.offer()

    def weigh_anew(self, scale: float) -> AfterPick:
        """All sums, at a new scale."""
        self.weigh(scale)
        self._said[:] = 0
        return self.offer()


def farthest_of_largest(crew: Crew, size: int, sums: IntArray, offers: list[AfterPick]) -> Pick:
    """LCMD's next pick; `sums` (centres,) are kept between calls, `size` is the total number of rows."""
    peak = max(offer.peak for offer in offers)
    for offer in offers:
        sums[offer.which] += offer.by
    if offers[0].centres and peak > 0 and is_worn(int(sums.sum()), size):
        sums[:] = 0
        for offer in crew.each("weigh_anew", scale_of(peak, size)):
            sums[offer.which] += offer.by
    centre = int(sums.argmax())
    return best(crew.each("farthest", centre if sums[centre] else None))
