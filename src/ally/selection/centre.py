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
from ally.selection.cluster_top import equal_top
from ally.selection.kmeans import cluster_means, k_means, squared_to
from ally.types import BOTH_TASKS, FloatArray, IntArray, Task


@dataclass(frozen=True)
class ClusterCentre:
    """k-means with k = n, then argmin_{i ∈ C} ‖h_i − μ_C‖ in every cluster C; a pick's value is its score.

    If a cluster is empty, the next nearest sample of another takes its place.

    Attributes:
        threshold: cluster only candidates with at least this score (DropQuery uses 0.5: half the dropout predictions
            disagree). None clusters all of them, and so do fewer than n such candidates.
        iterations: Lloyd iterations.
    """

    threshold: float | None = None
    iterations: int = 20
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        among = None
        if self.threshold is not None and int((scores >= self.threshold).sum()) >= n:
            among = np.flatnonzero(scores.numpy() >= self.threshold)
        points = snapshot.candidates.points
        clusters = k_means(points, n, self.iterations, streams.seed("k-means"), among, limits.engine)
        gaps = squared_to_centroid(points, clusters, n, among)
        best = equal_top(-gaps, clusters, n, n, np.arange(len(gaps)))
        positions = best if among is None else among[best]
        return Selection(
            rows=snapshot.candidates.rows[positions],
            values=scores.numpy()[positions],
            clusters=clusters[best],
            cluster_sizes=np.bincount(clusters, minlength=n)[clusters[best]],
        )


def squared_to_centroid(points: torch.Tensor, clusters: IntArray, k: int, among: IntArray | None = None) -> FloatArray:
    """‖h_i − mean of its cluster‖² for the points, or only those at positions `among`, (m, d) → (m,) float64."""
    number = torch.from_numpy(clusters)
    return squared_to(points, cluster_means(points, number, k, among), number, among).numpy()
