r"""Generalised coverage: MaxHerding (Bae et al., 2024) and UHerding (Bae et al., 2025).

Greedily maximise, over the picks S given the labelled L, the weighted mean over the pool

    Σ_i w_i max_{j ∈ L ∪ S} k(x_i, x_j) / Σ_i w_i,   k(x, x') = exp(−‖x − x'‖² / σ²),

with w = 1 (MaxHerding) or w = the score (UHerding). For a large pool, the mean is over a seeded sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import torch

from ally.checks import check_count, check_number
from ally.data import BLOCK
from ally.errors import InputError
from ally.features import Embedding, Representation
from ally.features.product import part
from ally.learning.snapshot import Snapshot
from ally.neighbours import find_nearest
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.selection.coverage import MOST, Cover, Covering, Gaussian, representatives
from ally.selection.points import Points, measure_gaps
from ally.selection.shards import shard_crew
from ally.types import BOTH_TASKS, IntArray, Task


@dataclass(frozen=True)
class Herding:
    """Each pick adds most to the coverage; its value is what it adds, as a share of 1.

    Attributes:
        weighted: weight samples by their scores, see `coverage_weights`.
        bandwidth: σ; None adapts it to the pool and the number of labels, see `covering_radius`. ``"labelled"`` is the
            smallest distance between two labelled samples, as the authors of UHerding have it; `covering_radius` while
            there are no two different ones.
        features: the space of x.
        normalise: scale x to unit length.
        representatives: cover a seeded sample of at most this many candidates with positive weight; every candidate may
            still be picked. None uses more as picks are made, see `coverage.representatives`.
    """

    weighted: bool = False
    bandwidth: float | Literal["labelled"] | None = None
    features: Representation = Embedding()
    normalise: bool = True
    representatives: int | None = None
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True
    label_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            if self.bandwidth != "labelled":
                raise InputError.about("bandwidth", self.bandwidth, "must be a number > 0, 'labelled' or None")
        elif self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, positive=True)
        if self.representatives is not None:
            check_count("representatives", self.representatives)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        rows = self.features(snapshot.candidates)
        points = Points(rows, self.normalise)
        known = Points(
            self.features(snapshot.labelled) if len(snapshot.labelled) else part(rows, slice(0, 0)), self.normalise
        )
        shuffled = streams.numpy("representatives").permutation(len(points))
        weights = coverage_weights(scores).numpy() if self.weighted else np.ones(len(points))
        order = shuffled[weights[shuffled] > 0][: self.representatives or MOST]
        width = smallest_distance(known) if isinstance(self.bandwidth, str) else self.bandwidth
        width = width or covering_radius(points, known, n, shuffled)
        cover = Cover(points, known, order, weights[order], Gaussian(width))
        sizes = None if self.representatives else partial(representatives, n=n, size=len(points))
        worker = partial(Covering, self.features, self.normalise, cover.targets)
        with shard_crew(snapshot, scores, limits, worker) as crew:
            return picked(snapshot, *cover.picks(crew, n, sizes))


def coverage_weights(scores: torch.Tensor) -> torch.Tensor:
    """w ∈ [0, 1], (m,): scores minus their minimum if that is negative, divided by the largest; all 1 if that leaves
    only zeros."""
    shifted = scores.double() / scores.double().abs().max().clamp(min=torch.finfo(torch.float64).tiny)
    shifted = shifted - shifted.min().clamp(max=0.0)
    return shifted / shifted.max() if float(shifted.max()) > 0 else torch.ones_like(shifted)


def smallest_distance(points: Points) -> float | None:
    """The smallest distance between two different points; None if there are no two. Copies are at no distance."""
    if len(points) < 2:
        return None
    copies = np.unique(np.concatenate(points[:], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    squared = float(find_nearest(points, points, marks=(copies, copies)).squared.min())
    return math.sqrt(squared) if 0 < squared < math.inf else None


def covering_radius(points: Points, known: Points, n: int, shuffled: IntArray) -> float:
    """The median distance from a candidate to the nearest of the known samples and n random others, over up to `BLOCK`
    candidates.

    A pick then covers the neighbourhood it will be nearest to, and the kernel narrows as labels grow, as in UHerding,
    whose authors use the smallest distance between two labelled samples (``bandwidth="labelled"``). Distances of 0 are
    ignored; 1 if none are left. `shuffled` is a random order of the points.
    """
    order, half = np.asarray(shuffled), len(points) // 2
    probes = points.at(order[: min(BLOCK, half)])
    gaps = measure_gaps(probes, points.at(order[half:][:n]), known)
    found = np.sort(gaps[gaps > 0])
    return float(np.sqrt(found[(len(found) - 1) // 2])) if len(found) else 1.0
