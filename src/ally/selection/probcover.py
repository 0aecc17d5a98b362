r"""ProbCover (Yehuda et al., 2022): greedy maximum coverage by balls of radius δ.

With N(x) = {x' : ‖x − x'‖ ≤ δ} over unit embeddings and U the candidates in no ball of a labelled sample, each pick is
argmax_x |N(x) ∩ U|, and then U ← U \ N(x).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ally.errors import InputError
from ally.execution.memory import check_budget
from ally.features import ProductRows
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.selection.cluster_top import k_means
from ally.selection.herding import Points, distances, lower
from ally.sources import BLOCK, blocks
from ally.types import BOTH_TASKS, BoolArray, IntArray, Task


@dataclass(frozen=True)
class ProbCover:
    """Each pick's value is the share of candidates it newly covers. When all are covered, the farthest from the centres follow.

    Attributes:
        radius: δ; None takes the largest at which a share `purity` of the balls lies in one k-means cluster, see `pure_radius`.
        purity: α of the paper.
        normalise: scale embeddings to unit length.
        clusters: k for `pure_radius`; None is the number of classes, or 10 where there are none.
    """

    radius: float | None = None
    purity: float = 0.95
    normalise: bool = True
    clusters: int | None = None
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if (
            (self.radius is not None and not self.radius >= 0)
            or not 0 < self.purity < 1
            or (self.clusters is not None and self.clusters < 2)
        ):
            raise InputError(f"{self}: radius is a number >= 0 or None, purity lies between 0 and 1, clusters is at least 2 or None")

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        points = Points(ProductRows((snapshot.candidates.embeddings,)), self.normalise)
        known = Points(ProductRows((snapshot.labelled.embeddings,)), self.normalise)
        radius = self.radius
        if radius is None:
            probabilities = snapshot.candidates.probabilities
            classes = self.clusters or (10 if probabilities is None else max(2, probabilities.shape[1]))
            radius = pure_radius(points, classes, self.purity, streams)
        nearest = torch.full((len(points),), torch.inf, dtype=torch.float64)
        for block in blocks(len(known)):
            _lower_all(nearest, points, known[block])
        starts, lists = ball_graph(points, radius, limits.memory_budget)
        positions, gains = max_coverage(starts, lists, (nearest > radius**2).numpy(), n)
        for block in blocks(len(positions)):
            _lower_all(nearest, points, points[positions[block]])
        positions = farthest_first(points, nearest, positions, n)
        return picked(snapshot, positions, torch.nn.functional.pad(gains.double() / len(points), (0, n - len(gains))))


def pure_radius(points: Points, classes: int, purity: float, streams: Streams) -> float:
    """The (1 − purity) quantile of the distance to the nearest candidate of another k-means cluster; 0 if there is one cluster.

    A ball is pure if its radius is below that distance. The quantile is over a seeded sample of at most `BLOCK` candidates.
    """
    everything = torch.cat([points[block].factors[0].float() for block in blocks(len(points))])
    clusters = torch.from_numpy(k_means(everything, min(classes, len(points)), 20, streams.seed("pseudo-labels")))
    sample = torch.from_numpy(streams.numpy("purity sample").permutation(len(points))[:BLOCK]).sort().values
    nearest = torch.full((len(sample),), torch.inf, dtype=torch.float64)
    for block in blocks(len(points)):
        same = clusters[sample][:, None] == clusters[block][None, :]
        torch.minimum(nearest, distances(points[sample], points[block]).masked_fill_(same, torch.inf).amin(1), out=nearest)
    place = int((1.0 - purity) * len(nearest))
    quantile = float(nearest.sort().values[place])
    return quantile**0.5 if np.isfinite(quantile) else 0.0


def ball_graph(points: Points, radius: float, budget: int) -> tuple[IntArray, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """N(i) as ``lists[starts[i] : starts[i + 1]]``. Counts first, so that memory is exactly 4 bytes a pair, checked before it is used."""
    counts = np.zeros(len(points), dtype=np.int64)
    for rows, columns, near in _pairs(points, radius):
        counts[rows] += near.sum(1)
        if rows != columns:
            counts[columns] += near.sum(0)
    starts = np.concatenate([[0], counts.cumsum()])
    check_budget(4 * int(starts[-1]), budget, f"ProbCover with {starts[-1]:,} pairs of candidates within radius {radius:.3g}",
                 "raise memory_budget, pass a smaller radius or fewer `candidates`, or use Herding()")  # fmt: skip
    lists, ends = np.empty(starts[-1], dtype=np.int32), starts[:-1].copy()
    for rows, columns, near in _pairs(points, radius):
        _append(lists, ends, rows, columns, near)
        if rows != columns:
            _append(lists, ends, columns, rows, near.T)
    return starts, lists


def _pairs(points: Points, radius: float) -> Iterator[tuple[slice, slice, BoolArray]]:
    """Blocks on and above the diagonal, each pair computed once, so that N is symmetric to the bit."""
    for rows in blocks(len(points)):
        here = points[rows]
        for columns in blocks(len(points)):
            if columns.start >= rows.start:
                near = (distances(here, points[columns]) <= radius**2).numpy()
                yield rows, columns, near | near.T if rows == columns else near


def _append(lists: np.ndarray[tuple[int], np.dtype[np.int32]], ends: IntArray, rows: slice, columns: slice, near: BoolArray) -> None:
    counts = near.sum(1)
    skipped = np.repeat(counts.cumsum() - counts, counts)
    lists[np.repeat(ends[rows], counts) + np.arange(counts.sum()) - skipped] = np.nonzero(near)[1] + columns.start
    ends[rows] += counts


def max_coverage(
    starts: IntArray, lists: np.ndarray[tuple[int], np.dtype[np.int32]], uncovered: BoolArray, n: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions of up to n picks and how many points each newly covers, until all are covered. Ties go to the lowest position."""
    degree = np.diff(starts)
    for row in np.flatnonzero(~uncovered):
        degree[lists[starts[row] : starts[row + 1]]] -= 1
    left = uncovered.copy()
    positions: list[int] = []
    gains: list[int] = []
    while len(positions) < n and degree.max() > 0:
        pick = int(degree.argmax())
        positions.append(pick)
        gains.append(int(degree[pick]))
        ball = lists[starts[pick] : starts[pick + 1]]
        for row in ball[left[ball]]:
            degree[lists[starts[row] : starts[row + 1]]] -= 1
        left[ball] = False
    return torch.tensor(positions, dtype=torch.int64), torch.tensor(gains, dtype=torch.int64)


def farthest_first(points: Points, nearest: torch.Tensor, positions: torch.Tensor, n: int) -> torch.Tensor:
    """`positions` continued to n, each the point with the largest squared distance `nearest` (m,) to the centres; changes `nearest`."""
    nearest[positions] = -1.0
    more = []
    for _ in range(n - len(positions)):
        more.append(int(nearest.argmax()))
        _lower_all(nearest, points, points[torch.tensor(more[-1:])])
        nearest[more[-1]] = -1.0
    return torch.cat([positions, torch.tensor(more, dtype=torch.int64)])


def _lower_all(nearest: torch.Tensor, points: Points, centres: ProductRows) -> None:
    for block in blocks(len(points)):
        lower(nearest[block], points[block], centres)
