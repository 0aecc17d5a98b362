"""ALLY's batch: k-means clusters of the candidates, the highest scores of each (paper, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ally.checks import check_count
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest
from ally.types import BOTH_TASKS, IntArray, Task


@dataclass(frozen=True)
class ClusterTop:
    """Equal numbers from each of `clusters` k-means clusters of the embeddings (None: k = n), always exactly n.

    Attributes:
        clusters: k; more than n is the same as n.
        shortlist: cluster only the ``shortlist * n`` candidates of highest score; None clusters all of them.
        iterations: Lloyd iterations.
    """

    clusters: int | None = None
    shortlist: int | None = None
    iterations: int = 20
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("clusters", "shortlist", "iterations"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        among = torch.arange(len(scores))
        if self.shortlist is not None and self.shortlist * n < len(scores):
            among = largest(scores, self.shortlist * n).sort().values
        k = min(self.clusters or n, n, len(among))
        embeddings = snapshot.candidates.embeddings
        points = embeddings if len(among) == len(embeddings) else embeddings[among]
        clusters = k_means(points, k, self.iterations, streams.seed("k-means"))
        best = equal_top(scores[among].numpy(), clusters, k, n)
        sizes = np.bincount(clusters, minlength=k)
        positions = among[torch.from_numpy(best)].numpy()
        return Selection(
            rows=snapshot.candidates.rows[positions],
            values=scores.numpy()[positions],
            clusters=clusters[best],
            cluster_sizes=sizes[clusters[best]].astype(np.int64),
        )


def k_means(points: torch.Tensor, k: int, iterations: int, seed: int) -> IntArray:
    """Lloyd's algorithm on (m, d) float32 points; the cluster of each point, (m,)."""
    import faiss

    data = points.numpy().astype(np.float32)
    data -= data.mean(axis=0)
    # faiss seeds with a 31-bit int and samples the training set above max_points_per_centroid.
    means = faiss.Kmeans(
        data.shape[1], k, niter=iterations, seed=seed % (2**31 - 1), min_points_per_centroid=1, max_points_per_centroid=len(data)
    )
    means.train(data)
    return np.asarray(means.index.search(data, 1)[1][:, 0], dtype=np.int64)


def equal_top(scores: np.ndarray[tuple[int], np.dtype[np.float64]], clusters: IntArray, k: int, n: int) -> IntArray:
    """Positions of n picks: by turns the next best of every cluster, higher scores first within a turn, until n are found.

    Every cluster that holds enough gives n // k or n // k + 1; clusters that run out are made up for by the others.
    """
    order = np.lexsort((np.arange(len(scores)), -scores))
    by_cluster = order[np.argsort(clusters[order], kind="stable")]
    starts = np.searchsorted(clusters[by_cluster], np.arange(k))
    turn = np.empty(len(scores), dtype=np.int64)
    turn[by_cluster] = np.arange(len(scores)) - starts[clusters[by_cluster]]
    picks: IntArray = order[np.argsort(turn[order], kind="stable")][:n].astype(np.int64)
    return picks
