"""Coreset: greedy k-center (Sener & Savarese, 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from ally.data import BLOCK
from ally.execution.engine import Crew
from ally.features import Embedding, Representation
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.arrays import as_arrays
from ally.selection.base import Limits, Selection, picked
from ally.selection.nearest import Nearest
from ally.selection.scans import distances_to
from ally.selection.shards import Pick, shard_crew
from ally.types import BOTH_TASKS, FloatArray, IntArray, Task

OFFERED = 16
"""Rows that a shard offers at once, so that one message can decide several picks."""


@dataclass(frozen=True)
class KCenter:
    """Each pick is the candidate farthest from everything labelled or picked; its value is that distance.

    Ties go to the lowest position. Without labels the first pick is the row with the largest norm; its value is that
    norm.
    """

    features: Representation = Embedding()
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True
    label_free: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        with shard_crew(snapshot, scores, limits, partial(Farthest, self.features, snapshot.labelled, n)) as crew:
            positions, squared = farthest_first(crew, n)
        return picked(snapshot, torch.from_numpy(positions), torch.from_numpy(squared).sqrt())


class FarthestRows(NamedTuple):
    """The rows of a shard with the largest D, largest first, ties by position; no other row exceeds `bound`."""

    picks: list[Pick]
    bound: float


class Farthest(Nearest):
    """A shard that offers its rows with the largest D."""

    def offer(self) -> FarthestRows:
        first = self.farthest()
        field = self._field
        if self.count == 0 or first.value <= 0 or field.rows.a.shape[1]:
            # Before the first centre, among copies, and for rows of two factors, picks are decided one by one.
            return FarthestRows([first], np.inf)
        blocks = np.argsort(-field.peaks, kind="stable")[: OFFERED + 1]
        rows = (np.sort(blocks)[:, None] * BLOCK + np.arange(BLOCK)).reshape(-1)
        rows = rows[rows < len(field.near)]
        rows = rows[np.lexsort((rows, -field.near[rows]))]
        picks = [self._pick(int(row), float(field.near[row])) for row in rows[:OFFERED]]
        return FarthestRows(picks, float(field.near[rows[OFFERED]]) if len(rows) > OFFERED else -1.0)

    def take(self, picks: Sequence[Pick]) -> FarthestRows:
        for pick in picks:
            self.add(pick)
        return self.offer()


def farthest_first(crew: Crew, n: int) -> tuple[IntArray, FloatArray]:
    """Positions of n picks and their D; the workers of the crew are `Farthest`."""
    found: list[Pick] = []
    offers = crew.each("offer")
    while True:
        picks = decided(offers, n - len(found))
        found += picks
        if len(found) == n:
            return np.asarray([pick.position for pick in found]), np.asarray([pick.value for pick in found])
        offers = crew.each("take", picks)


def decided(offers: Sequence[FarthestRows], most: int) -> list[Pick]:
    """The next picks, at least one: as many as are certain to be farther than every row that was not offered.

    D only falls, and for the offered rows it is computed here, by the same sums as in the shards.
    """
    rows, bound = [pick for offer in offers for pick in offer.picks], max(offer.bound for offer in offers)
    near, positions = np.asarray([pick.value for pick in rows]), np.asarray([pick.position for pick in rows])
    best = int(np.lexsort((positions, -near))[0])
    found = [rows[best]]
    while len(found) < most and np.isfinite(bound):
        if len(found) == 1:
            left, right = (np.stack([pick.row[factor] for pick in rows]) for factor in (0, 1))
        apart = np.empty(len(rows))
        distances_to(*as_arrays(left, right), left[best], right[best], apart)
        near = np.minimum(near, apart)
        near[best] = -1.0
        best = int(np.lexsort((positions, -near))[0])
        if not near[best] > max(bound, 0.0):
            break
        found.append(rows[best]._replace(value=float(near[best])))
    return found
