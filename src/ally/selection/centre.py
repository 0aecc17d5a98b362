"""The sample nearest to each centroid, as DropQuery selects (Gupte et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ally.checks import check_count
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection
from ally.selection.cluster_top import equal_top, k_means
from ally.sources import blocks
from ally.types import BOTH_TASKS, IntArray, Task


@dataclass(frozen=True)
class ClusterCentre:
    """k-means with k = n, then argmin_{i ∈ C} ‖h_i − μ_C‖ of every cluster C; a pick's value is its score.

    Clusters left empty are made up for by the next nearest of the others.

    Attributes:
        threshold: cluster only candidates of at least this score (DropQuery: 0.5, half the dropout predictions disagree);
            None, or fewer than n of them, clusters all.
        iterations: Lloyd iterations.
    """

    threshold: float | None = None
    iterations: int = 20
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        among = torch.arange(len(scores))
        if self.threshold is not None and int((scores >= self.threshold).sum()) >= n:
            among = (scores >= self.threshold).nonzero().squeeze(1)
        points = snapshot.candidates.embeddings[among]
        clusters = k_means(points, n, self.iterations, streams.seed("k-means"))
        best = equal_top(-squared_to_centroid(points, clusters, n).numpy(), clusters, n, n)
        positions = among.numpy()[best]
        return Selection(
            rows=snapshot.candidates.rows[positions],
            values=scores.numpy()[positions],
            clusters=clusters[best],
            cluster_sizes=np.bincount(clusters, minlength=n)[clusters[best]].astype(np.int64),
        )


def squared_to_centroid(points: torch.Tensor, clusters: IntArray, k: int) -> torch.Tensor:
    """‖h_i − mean of its cluster‖², (m, d) → (m,) float64."""
    number = torch.from_numpy(clusters)
    sums = torch.zeros(k, points.shape[1], dtype=torch.float64)
    for block in blocks(len(points)):
        sums.index_add_(0, number[block], points[block].double())
    means = sums / torch.bincount(number, minlength=k).clamp(min=1)[:, None]
    squared = torch.empty(len(points), dtype=torch.float64)
    for block in blocks(len(points)):
        squared[block] = (points[block].double() - means[number[block]]).square().sum(1)
    return squared
