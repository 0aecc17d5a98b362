r"""TypiClust (Hacohen et al., 2022): the most typical sample of each of the largest clusters that hold no label yet.

Typicality(x) = (1/K Σ_{x' ∈ K-NN(x)} ‖x − x'‖)⁻¹ over the candidates of x's cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ally.checks import check_count
from ally.features import ProductRows
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection
from ally.selection.cluster_top import k_means
from ally.selection.herding import distances
from ally.sources import blocks
from ally.types import BOTH_TASKS, FloatArray, IntArray, Task


@dataclass(frozen=True)
class TypiClust:
    """k-means of labelled and candidates together, k = labelled + n; a pick's value is its typicality.

    Clusters take turns: fewer labelled samples first, then larger ones. In its turn a cluster gives its most typical candidate left.

    Attributes:
        neighbours: K; all others in a cluster of fewer.
        clusters: the largest k.
        smallest: clusters of fewer samples come when all others are used up.
        iterations: Lloyd iterations.
    """

    neighbours: int = 20
    clusters: int = 500
    smallest: int = 5
    iterations: int = 20
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("neighbours", "clusters", "smallest", "iterations"):
            check_count(name, getattr(self, name))

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        embeddings, known = snapshot.candidates.embeddings, snapshot.labelled.embeddings
        everything = torch.cat([embeddings, known]) if len(known) else embeddings
        k = min(len(known) + n, self.clusters, len(everything))
        found = k_means(everything, k, self.iterations, streams.seed("k-means"))
        clusters, labelled = found[: len(embeddings)], np.bincount(found[len(embeddings) :], minlength=k)
        sizes = np.bincount(clusters, minlength=k)
        order = np.lexsort((-(sizes + labelled), labelled, sizes + labelled < self.smallest))
        picks, values = take_turns(embeddings, clusters, order[sizes[order] > 0], self.neighbours, n, labelled + sizes < self.smallest)
        return Selection(
            rows=snapshot.candidates.rows[picks],
            values=values,
            clusters=clusters[picks],
            cluster_sizes=sizes[clusters[picks]].astype(np.int64),
        )


def take_turns(
    embeddings: torch.Tensor, clusters: IntArray, order: IntArray, neighbours: int, n: int, last: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[IntArray, FloatArray]:
    """n positions and their typicality: by turns the next most typical of every cluster in `order`, those marked `last` (k,) last.

    `order` lists clusters that hold candidates; the first n of them always suffice.
    """
    members, values, turns, ranks = [], [], [], []
    by_cluster = np.argsort(clusters, kind="stable")
    edges = np.searchsorted(clusters[by_cluster], np.arange(len(last) + 1))
    for place, cluster in enumerate(order[:n]):
        inside = by_cluster[edges[cluster] : edges[cluster + 1]]
        typical = typicality(embeddings[torch.from_numpy(inside)], neighbours).numpy()
        best = np.argsort(-typical, kind="stable")[:n]
        members.append(inside[best])
        values.append(typical[best])
        turns.append(np.arange(len(best)))
        ranks.append(np.full(len(best), place))
    candidates, rank = np.concatenate(members), np.concatenate(ranks)
    chosen = np.lexsort((rank, np.concatenate(turns), last[order[rank]]))[:n]
    return candidates[chosen], np.concatenate(values)[chosen]


def typicality(points: torch.Tensor, neighbours: int) -> torch.Tensor:
    """1 / (1e-5 + mean distance to the `neighbours` nearest other points), (m, d) → (m,); 0 for a point alone. 1e-5 as the authors'.

    Rounded to single precision, so that rounding does not decide between the two points of a pair.
    """
    k = min(neighbours, len(points) - 1)
    result = torch.zeros(len(points), dtype=torch.float64)
    if k == 0:
        return result
    for block in blocks(len(points)):
        here = ProductRows((points[block].double(),))
        nearest = torch.empty(len(here), 0, dtype=torch.float64)
        for others in blocks(len(points)):
            squared = distances(here, ProductRows((points[others].double(),)))
            if block == others:
                squared.fill_diagonal_(torch.inf)
            nearest = torch.cat([nearest, squared], dim=1)
            nearest = nearest.topk(min(k, nearest.shape[1]), dim=1, largest=False).values
        result[block] = 1.0 / (1e-5 + nearest.sqrt().mean(1))
    return result.float().double()
