"""Cluster-Margin (Citovsky et al., 2021): the highest scores, taken from clusters in turn, small clusters first.

The paper clusters by average-linkage HAC, which needs all pairs. We use k-means at every size, so that a pool is
treated the same however large it grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ally.checks import check_count
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection
from ally.selection.kmeans import k_means
from ally.selection.ties import TIES
from ally.selection.top import leaders
from ally.types import BOTH_TASKS, FloatArray, IntArray, Task

MOST_CLUSTERS = 1000


@dataclass(frozen=True)
class ClusterMargin:
    """Draws one of the ``shortlist * n`` highest scores per cluster and turn, at random; a pick's value is its score.

    Attributes:
        shortlist: how many times n candidates are kept (the paper's k_m / k_t).
        clusters: k over all candidates; None is one per ten candidates, at most 1000.
        iterations: Lloyd iterations.
    """

    shortlist: int = 10
    clusters: int | None = None
    iterations: int = 20
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("shortlist", "clusters", "iterations"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        k = min(self.clusters or max(1, min(len(scores) // 10, MOST_CLUSTERS)), len(scores))
        clusters = k_means(
            snapshot.candidates.points, k, self.iterations, streams.seed("k-means"), engine=limits.engine
        )
        kept = (
            leaders(scores, self.shortlist * n, snapshot.candidates.rows, streams.seed(TIES))
            .positions.sort()
            .values.numpy()
        )
        picks = kept[round_robin(clusters[kept], streams.numpy("round robin").random(len(kept)), n)]
        return Selection(
            rows=snapshot.candidates.rows[picks],
            values=scores.numpy()[picks],
            clusters=clusters[picks],
            cluster_sizes=np.bincount(clusters, minlength=k)[clusters[picks]],
        )


def round_robin(clusters: IntArray, uniforms: FloatArray, n: int) -> IntArray:
    """Positions of n picks: each turn takes one from every cluster, smallest cluster first, until there are n.

    `uniforms` (m,) put the members of a cluster in random order. Clusters of equal size go by number.
    """
    sizes = np.bincount(clusters)
    by_cluster = np.lexsort((uniforms, clusters))
    turn = np.empty(len(clusters), dtype=np.int64)
    turn[by_cluster] = np.arange(len(clusters)) - np.searchsorted(clusters[by_cluster], clusters[by_cluster])
    picks: IntArray = np.lexsort((clusters, sizes[clusters], turn))[:n]
    return picks
