r"""ProbCover (Yehuda et al., 2022): greedy maximum coverage by balls of radius δ.

With N(x) = {x' : ‖x − x'‖ ≤ δ} over unit embeddings and U the candidates in no ball of a labelled sample, each pick is
argmax_x |N(x) ∩ U|, and then U ← U \ N(x). In a large pool only a seeded sample is counted, but every candidate may be
picked. No pairs of samples are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch

from ally.checks import check_count
from ally.data import BLOCK
from ally.errors import InputError
from ally.features import Embedding
from ally.learning.snapshot import Snapshot
from ally.neighbours import find_nearest
from ally.neighbours.loops import Double
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.selection.coverage import MOST, Ball, Cover, Covering, Ranking, representatives
from ally.selection.kmeans import k_means
from ally.selection.points import Points, measure_gaps
from ally.selection.shards import shard_crew
from ally.types import BOTH_TASKS, IntArray, Task


@dataclass(frozen=True)
class ProbCover:
    """A pick's value is the share of candidates it newly covers. Once all are covered, the candidates farthest from the
    centres follow.

    Attributes:
        radius: δ; None uses the largest radius at which a share `purity` of the balls lies in one k-means cluster of
            the representatives (at most 32 768), see `pure_radius`.
        purity: α of the paper.
        normalise: scale embeddings to unit length.
        clusters: k for `pure_radius`; None is the number of classes, or 10 if there are none.
        representatives: count a seeded sample of at most this many candidates. None uses more as picks are made, see
            `coverage.representatives`.
    """

    radius: float | None = None
    purity: float = 0.95
    normalise: bool = True
    clusters: int | None = None
    representatives: int | None = None
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True
    label_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if (
            (self.radius is not None and not self.radius >= 0)
            or not 0 < self.purity < 1
            or (self.clusters is not None and self.clusters < 2)
        ):
            raise InputError(
                f"{self}: radius is a number >= 0 or None, purity lies between 0 and 1, clusters is at least 2 or None"
            )
        if self.representatives is not None:
            check_count("representatives", self.representatives)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        points = Points(Embedding()(snapshot.candidates), self.normalise)
        known = Points(Embedding()(snapshot.labelled), self.normalise)
        order = streams.numpy("representatives").permutation(len(points))[: self.representatives or MOST]
        radius = self.radius
        if radius is None:
            probabilities = snapshot.candidates.probabilities
            classes = self.clusters or (10 if probabilities is None else max(2, probabilities.shape[1]))
            radius = pure_radius(points.at(np.sort(order)), classes, self.purity, streams)
        cover = Cover(points, known, order, np.ones(len(order)), Ball(radius))
        sizes = None if self.representatives else partial(representatives, n=n, size=len(points))
        worker = partial(Covering, Embedding(), self.normalise, cover.targets)
        with shard_crew(snapshot, scores, limits, worker) as crew:
            positions, gains = cover.picks(crew, n, sizes, while_adding=True)
        positions = torch.from_numpy(farthest_first(points, known, positions.numpy(), n))
        return picked(snapshot, positions, torch.nn.functional.pad(gains, (0, n - len(gains))))


def pure_radius(points: Points, classes: int, purity: float, streams: Streams) -> float:
    """The (1 − purity) quantile of the distance to the nearest point of another k-means cluster; 0 if there is one
    cluster.

    A ball is pure if its radius is below that distance. The quantile is over a seeded sample of at most `BLOCK` points.
    """
    rows = torch.from_numpy(points[:][0]).float()
    clusters = k_means(rows, min(classes, len(points)), 20, streams.seed("pseudo-labels"))
    sample = np.sort(streams.numpy("purity sample").permutation(len(points))[:BLOCK])
    squared = find_nearest(points.at(sample), points, marks=(clusters[sample], clusters)).squared
    found = np.sort(squared[:, 0])
    quantile = float(found[int((1.0 - purity) * len(found))])
    return quantile**0.5 if np.isfinite(quantile) else 0.0


def farthest_first(points: Points, known: Points, positions: IntArray, n: int) -> IntArray:
    """Extends `positions` to n, each time by the point farthest from its nearest centre, known or picked; ties go to
    the lowest position."""
    if len(positions) == n:
        return positions
    picks = positions.tolist()
    reach = measure_gaps(points, known, points.at(positions))
    ranking = Ranking(len(points))
    ranking.raise_by(lambda block: reach[block])
    for pick in picks:
        ranking.drop(pick)

    def distances(which: IntArray) -> Double:
        added = points.at(np.asarray(picks[len(positions) :], dtype=np.int64))
        return np.minimum(reach[which], measure_gaps(points.at(which), added))

    while len(picks) < n:
        _, pick = ranking.best(distances, distances)
        picks.append(pick)
        ranking.drop(pick)
        ranking.age()
    return np.asarray(picks, dtype=np.int64)
