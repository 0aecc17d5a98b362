r"""TypiClust (Hacohen et al., 2022): the most typical sample of each of the largest clusters that hold no label yet.

Typicality(x) = (1/K Σ_{x' ∈ K-NN(x)} ‖x − x'‖)⁻¹ over the candidates of x's cluster, or over a seeded sample of a large
one, with ‖x‖ = 1 and K = min(20, half the candidates of the cluster), as in the authors' code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ally.checks import check_count
from ally.features import ProductRows
from ally.learning.snapshot import Snapshot
from ally.neighbours import ArrayRows, find_nearest
from ally.rng import Streams
from ally.selection.base import Limits, Selection
from ally.selection.centroids import Rows, UnitRows
from ally.selection.kmeans import cluster_means, k_means
from ally.selection.points import Points
from ally.types import BOTH_TASKS, BoolArray, FloatArray, IntArray, Task

JOINT = 2**16
"""Up to this many samples, candidates and labelled samples are clustered together. Above it, labelled samples join the
clusters of the candidates."""


@dataclass(frozen=True)
class TypiClust:
    """k-means of the samples, k = labelled + n; a pick's value is its typicality.

    Clusters take turns: those with fewer labelled samples first, then larger ones. In its turn a cluster gives its most
    typical remaining candidate.

    Attributes:
        neighbours: the largest K; a smaller cluster uses half its candidates, at least 1.
        clusters: the largest k.
        smallest: clusters with fewer samples come last, when all others are used up.
        iterations: Lloyd iterations.
        members: search neighbours in a seeded sample of at most this many candidates per cluster.
        normalise: scale embeddings to unit length, as the authors do; embeddings of 0 stay 0.
    """

    neighbours: int = 20
    clusters: int = 500
    smallest: int = 5
    iterations: int = 20
    members: int = 4096
    normalise: bool = True
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True
    label_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("neighbours", "clusters", "smallest", "iterations"):
            check_count(name, getattr(self, name))
        check_count("members", self.members, least=2)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        seen, known = snapshot.candidates.points, snapshot.labelled.points
        k = min(len(known) + n, self.clusters, len(seen) + len(known))
        clusters, held = cluster_together(seen, known, k, self.iterations, streams.seed("k-means"), self.normalise)
        labelled, sizes = np.bincount(held, minlength=k), np.bincount(clusters, minlength=k)
        order = np.lexsort((-(sizes + labelled), labelled, sizes + labelled < self.smallest))
        order, last = order[sizes[order] > 0], labelled + sizes < self.smallest
        points = Points(ProductRows((seen,)), self.normalise)
        picks, values = take_turns(
            points, clusters, order, self.neighbours, n, last, self.members, streams.numpy("members")
        )
        return Selection(
            rows=snapshot.candidates.rows[picks],
            values=values,
            clusters=clusters[picks],
            cluster_sizes=sizes[clusters[picks]].astype(np.int64),
        )


def cluster_together(
    seen: torch.Tensor, known: torch.Tensor, k: int, iterations: int, seed: int, unit: bool = False
) -> tuple[IntArray, IntArray]:
    """The clusters of the candidates (m,) and of the labelled samples (L,), all scaled to unit length if `unit`.

    Above `JOINT` samples, k-means sees only the candidates, which are not copied; a labelled sample joins the cluster
    with the nearest mean.
    """

    def rows(some: torch.Tensor) -> Rows:
        return UnitRows(some) if unit else some

    if not len(known):
        return k_means(rows(seen), k, iterations, seed), np.empty(0, dtype=np.int64)
    if len(seen) + len(known) <= JOINT:
        found = k_means(rows(torch.cat([seen[:], known])), k, iterations, seed)
        return found[: len(seen)], found[len(seen) :]
    clusters = k_means(rows(seen), k, iterations, seed)
    means = cluster_means(rows(seen), torch.from_numpy(clusters), k)
    used = np.flatnonzero(np.bincount(clusters, minlength=k))
    nearest = find_nearest(Points(ProductRows((known,)), unit), ArrayRows(means.numpy()[used]))
    return clusters, used[nearest.numbers[:, 0]]


def take_turns(
    points: Points,
    clusters: IntArray,
    order: IntArray,
    neighbours: int,
    n: int,
    last: BoolArray,
    members: int,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray]:
    """n positions and their typicality. Clusters in `order` give their next most typical candidate in turn; those
    marked in `last` (k,) come last.

    `order` lists clusters with candidates; the first n always suffice. Clusters of more than `members` are sampled with
    `rng`.
    """
    found, values, turns, ranks = [], [], [], []
    by_cluster = np.argsort(clusters, kind="stable")
    edges = np.searchsorted(clusters[by_cluster], np.arange(len(last) + 1))
    for place, cluster in enumerate(order[:n]):
        inside = by_cluster[edges[cluster] : edges[cluster + 1]]
        among = np.arange(len(inside)) if len(inside) <= members else np.sort(rng.permutation(len(inside))[:members])
        typical = typicality(points.at(inside), neighbours, among)
        best = np.argsort(-typical, kind="stable")[:n]
        found.append(inside[best])
        values.append(typical[best])
        turns.append(np.arange(len(best)))
        ranks.append(np.full(len(best), place))
    candidates, rank = np.concatenate(found), np.concatenate(ranks)
    chosen = np.lexsort((rank, np.concatenate(turns), last[order[rank]]))[:n]
    return candidates[chosen], np.concatenate(values)[chosen]


def typicality(points: Points, neighbours: int, among: IntArray) -> FloatArray:
    """1 / (1e-5 + mean distance to the K nearest other points at positions `among` (t,)), (m,); 0 for a single point.

    K is `neighbours`, or half of the m points if that is less, at least 1 and at most the number of other points.

    The 1e-5 is the authors'. Values are rounded to single precision, so that rounding does not decide between the two
    points of a pair.
    """
    k = min(neighbours, max(1, len(points) // 2), len(among) - 1)
    if k == 0:
        return np.zeros(len(points))
    apart = np.sqrt(find_nearest(points, points.at(among), k, (np.arange(len(points)), among)).squared)
    typical: FloatArray = (1.0 / (1e-5 + apart.mean(1))).astype(np.float32).astype(np.float64)
    return typical
