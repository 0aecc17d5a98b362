"""Coreset: greedy k-center (Sener & Savarese, 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.features import Embedding, ProductRows, Representation
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class KCenter:
    """Each pick is the candidate farthest from everything labelled or picked; its value is that distance."""

    features: Representation = Embedding()
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        centres = self.features(snapshot.labelled) if len(snapshot.labelled) else None
        positions, squared = k_center(self.features(snapshot.candidates), centres, n)
        return picked(snapshot, positions, squared.double().sqrt())


def k_center(rows: ProductRows, centres: ProductRows | None, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions of n picks and their squared distances when picked. Ties go to the lowest position.

    Without centres the first pick is the row of largest norm.
    """
    norms = rows.squared_norms()
    distances = torch.full_like(norms, torch.inf)
    if centres is not None:
        rows.lower_to(distances, norms, centres.factors, centres.squared_norms())
    free = torch.ones(len(rows), dtype=torch.bool)
    positions = torch.empty(n, dtype=torch.int64)
    squared = torch.empty(n, dtype=norms.dtype)
    for pick in range(n):
        reach = norms if centres is None and pick == 0 else distances
        row = int(torch.where(free, reach, -1.0).argmax())
        positions[pick], squared[pick] = row, reach[row]
        free[row] = False
        rows.lower_to_row(distances, norms, row)
    return positions, squared
