"""k-means++ seeding, exact for any chunking (BADGE on gradients: Ash et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ally.features import Embedding, ProductRows, Representation
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.sources import BLOCK
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class KMeansPP:
    """The first pick has the largest norm; each next one is drawn by squared distance to those picked (its value)."""

    features: Representation = Embedding()
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        uniforms = streams.numpy("d2 draws").random(n)
        positions, squared = k_means_pp(self.features(snapshot.candidates), n, uniforms)
        return picked(snapshot, positions, squared)


def k_means_pp(rows: ProductRows, n: int, uniforms: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions of n picks and their squared distances when picked; `uniforms` (n,) drives the draws.

    When every row left is a copy of a picked one, the lowest positions follow.
    """
    norms = rows.squared_norms()
    distances = torch.full_like(norms, torch.inf)
    free = torch.ones(len(rows), dtype=torch.bool)
    positions = torch.empty(n, dtype=torch.int64)
    squared = torch.empty(n, dtype=norms.dtype)
    for pick in range(n):
        row = int(norms.argmax()) if pick == 0 else draw(distances, float(uniforms[pick]))
        if row < 0:
            row = int(free.int().argmax())
        positions[pick] = row
        squared[pick] = norms[row] if pick == 0 else distances[row]
        free[row] = False
        rows.lower_to_row(distances, norms, row)
    return positions, squared


def draw(weights: torch.Tensor, uniform: float) -> int:
    """A position with probability weight / total; −1 if all weights are 0.

    Sums are float64 over fixed blocks; the block is found first, then the place inside it.
    """
    totals = torch.nn.functional.pad(weights.double(), (0, -len(weights) % BLOCK)).view(-1, BLOCK).sum(1)
    edges = totals.cumsum(0)
    if not float(edges[-1]) > 0:
        return -1
    target = uniform * float(edges[-1])
    block = min(int(torch.searchsorted(edges, target, right=True)), int(totals.nonzero()[-1]))
    inside = weights[block * BLOCK : (block + 1) * BLOCK].double()
    rest = target - (float(edges[block - 1]) if block else 0.0)
    place = int(torch.searchsorted(inside.cumsum(0), rest, right=True))
    return block * BLOCK + min(place, int(inside.nonzero()[-1]))
