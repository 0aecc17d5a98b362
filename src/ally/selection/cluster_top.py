"""ALLY's batch: the highest scores in each k-means cluster of the candidates (paper, section 5.1)."""

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
from ally.selection.ties import TIES, tie_order
from ally.selection.top import leaders
from ally.types import BOTH_TASKS, FloatArray, IntArray, Task

__all__ = ["ClusterTop", "equal_top", "k_means"]

RUN = 2**17


@dataclass(frozen=True)
class ClusterTop:
    """Picks exactly n, in equal numbers from each of `clusters` k-means clusters of the embeddings (None: k = n). Of
    equal scores in a cluster, a hash of the seed and the row decides (`ties`).

    Attributes:
        clusters: k; more than n is the same as n.
        shortlist: cluster only the ``shortlist * n`` candidates with the highest scores; None clusters all of them.
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
        among = None
        if self.shortlist is not None and self.shortlist * n < len(scores):
            best = leaders(scores, self.shortlist * n, snapshot.candidates.rows, streams.seed(TIES))
            among = best.positions.sort().values.numpy()
        kept = scores.numpy() if among is None else scores.numpy()[among]
        rows = snapshot.candidates.rows if among is None else snapshot.candidates.rows[among]
        ties = tie_order(rows, streams.seed(TIES))
        k = min(self.clusters or n, n)
        clusters = k_means(
            snapshot.candidates.points, k, self.iterations, streams.seed("k-means"), among, limits.engine
        )
        places = equal_top(kept, clusters, k, n, ties)
        return Selection(
            rows=rows[places],
            values=kept[places],
            clusters=clusters[places],
            cluster_sizes=np.bincount(clusters, minlength=k)[clusters[places]],
        )


def equal_top(scores: FloatArray, clusters: IntArray, k: int, n: int, ties: IntArray) -> IntArray:
    """Positions of n picks: each turn takes the next best of every cluster, higher scores first, until there are n.

    Every cluster with enough members gives n // k or n // k + 1; when one runs out, the others make up for it. Of equal
    scores, those that are lower in `ties` (m,), all different, go first.
    """
    sizes = np.bincount(clusters, minlength=k)
    by_turn = np.bincount(sizes)[::-1].cumsum()[::-1][1:]
    turns = int(np.searchsorted(by_turn.cumsum(), n)) + 1
    kept, lowest, latest = np.empty(0, dtype=np.int64), np.full(k, -np.inf), np.full(k, np.iinfo(np.int64).max)
    for start in range(0, len(scores), RUN):
        run = slice(start, start + RUN)
        bar = lowest[clusters[run]]
        ahead = (scores[run] > bar) | ((scores[run] == bar) & (ties[run] < latest[clusters[run]]))
        rivals = np.flatnonzero(ahead) + start
        kept, turn = best_of_each(np.concatenate([kept, rivals]), scores, clusters, turns, ties)
        last = kept[turn == turns - 1]
        lowest[clusters[last]], latest[clusters[last]] = scores[last], ties[last]
    picks: IntArray = kept[np.lexsort((ties[kept], -scores[kept], turn))][:n]
    return picks


def best_of_each(
    positions: IntArray, scores: FloatArray, clusters: IntArray, most: int, ties: IntArray
) -> tuple[IntArray, IntArray]:
    """The `most` highest scores of each cluster among the given positions, in ascending order, and the rank of each in
    its cluster."""
    order = positions[np.lexsort((ties[positions], -scores[positions], clusters[positions]))]
    place = np.arange(len(order)) - np.searchsorted(clusters[order], clusters[order])
    kept, place = order[place < most], place[place < most]
    ascending = np.argsort(kept)
    return kept[ascending], place[ascending]
