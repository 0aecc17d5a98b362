"""LCMD: largest cluster, maximum distance (Holzmüller et al., 2023), in the mode where labelled samples are centres (TP).

With S the labelled and picked samples, c(i) = argmin_{s ∈ S} ‖g_i − g_s‖ and D_i = ‖g_i − g_{c(i)}‖², the next pick is

    argmax_{i : c(i) = s*} D_i,   s* = argmax_s Σ_{i : c(i) = s} D_i.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.features import Embedding, ProductRows, Representation
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.sources import blocks
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class LCMD:
    """Each pick is the point farthest from its centre in the cluster of largest summed D; its value is that distance."""

    features: Representation = Embedding()
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        centres = self.features(snapshot.labelled) if len(snapshot.labelled) else None
        positions, reach = largest_cluster_farthest(self.features(snapshot.candidates), centres, n)
        return picked(snapshot, positions, reach.double().sqrt())


def largest_cluster_farthest(rows: ProductRows, centres: ProductRows | None, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions of n picks and their D when picked. Equal clusters go to the earliest centre, equal points to the lowest position.

    Without centres the first pick is the row of largest norm. When every row left is a copy of a centre, the lowest positions follow.
    """
    norms = rows.squared_norms()
    distances, cluster = assign(rows, norms, centres)
    known = 0 if centres is None else len(centres)
    free = torch.ones(len(rows), dtype=torch.bool)
    positions = torch.empty(n, dtype=torch.int64)
    reach = torch.empty(n, dtype=norms.dtype)
    for pick in range(n):
        if known + pick == 0:
            row = int(norms.argmax())
            reach[pick] = norms[row]
        else:
            row = _farthest(distances, cluster)
            row = int(free.int().argmax()) if row < 0 else row
            reach[pick] = distances[row]
        positions[pick] = row
        free[row] = False
        centre, centre_norm = part(rows, slice(row, row + 1)), norms[row : row + 1]
        for block in blocks(len(rows)):
            found = squared(part(rows, block), centre, norms[block], centre_norm).squeeze(1)
            cluster[block].masked_fill_(found < distances[block], known + pick)
            torch.minimum(distances[block], found, out=distances[block])
        distances[row], cluster[row] = 0.0, known + pick
    return positions, reach


def assign(rows: ProductRows, norms: torch.Tensor, centres: ProductRows | None) -> tuple[torch.Tensor, torch.Tensor]:
    """D of every row and the number of its nearest centre, (n,) each; infinite and 0 without centres."""
    distances, cluster = torch.full_like(norms, torch.inf), torch.zeros(len(rows), dtype=torch.int64)
    if centres is None:
        return distances, cluster
    centre_norms = centres.squared_norms()
    for block in blocks(len(rows)):
        for some in blocks(len(centres)):
            found = squared(part(rows, block), part(centres, some), norms[block], centre_norms[some])
            nearest = found.argmin(1)
            found = found.gather(1, nearest[:, None]).squeeze(1)
            cluster[block] = torch.where(found < distances[block], nearest + some.start, cluster[block])
            torch.minimum(distances[block], found, out=distances[block])
    return distances, cluster


def _farthest(distances: torch.Tensor, cluster: torch.Tensor) -> int:
    """The position LCMD picks; −1 if all distances are 0."""
    sizes = torch.bincount(cluster, weights=distances.double())
    largest = int(sizes.argmax())
    return int(torch.where(cluster == largest, distances, -1.0).argmax()) if float(sizes[largest]) > 0 else -1


def part(rows: ProductRows, which: slice | torch.Tensor) -> ProductRows:
    """Some of the rows."""
    return ProductRows(tuple(factor[which] for factor in rows.factors))


def squared(a: ProductRows, b: ProductRows, a_norms: torch.Tensor, b_norms: torch.Tensor) -> torch.Tensor:
    """‖a_i − b_j‖², (len(a), len(b)), less a margin of rounding, so that copies are at exactly 0."""
    inner = functools.reduce(torch.mul, [left @ right.T for left, right in zip(a.factors, b.factors, strict=True)])
    keep = 1.0 - 8.0 * torch.finfo(inner.dtype).eps
    return inner.mul_(-2.0).add_((keep * a_norms)[:, None]).add_((keep * b_norms)[None, :]).clamp_(min=0.0)
