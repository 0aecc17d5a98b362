r"""Generalised coverage: MaxHerding (Bae et al., 2024) and UHerding (Bae et al., 2025).

Greedily maximise, over the picks S given the labelled L, the weighted mean over the pool

    Σ_i w_i max_{j ∈ L ∪ S} k(x_i, x_j) / Σ_i w_i,   k(x, x') = exp(−‖x − x'‖² / σ²),

with w = 1 (MaxHerding) or w = the score (UHerding). The objective is submodular, so a gain computed earlier bounds the present
one: only candidates whose old gain still exceeds the best new one are computed again (lazy greedy: the picks of plain greedy).
Gains are float64 sums compared in single precision, so that rounding does not decide between copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.checks import check_count, check_number
from ally.features import Embedding, ProductRows, Representation
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest, picked
from ally.selection.lcmd import part, squared
from ally.sources import BLOCK, blocks
from ally.types import BOTH_TASKS, Task

FIRST_BATCH = 32


@dataclass(frozen=True)
class Herding:
    """Each pick adds most to the coverage; its value is what it adds, a share of 1.

    Attributes:
        weighted: weigh samples by their scores, see `coverage_weights`.
        bandwidth: σ; None adapts it to the pool and the number of labels, see `covering_radius`.
        features: the space of x.
        normalise: scale x to unit length.
        representatives: cover at most this many candidates, a seeded sample; every candidate may still be picked.
    """

    weighted: bool = False
    bandwidth: float | None = None
    features: Representation = Embedding()
    normalise: bool = True
    representatives: int = 20_000
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, positive=True)
        check_count("representatives", self.representatives)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        rows = self.features(snapshot.candidates)
        points = Points(rows, self.normalise)
        known = Points(self.features(snapshot.labelled) if len(snapshot.labelled) else part(rows, slice(0, 0)), self.normalise)
        shuffled = torch.from_numpy(streams.numpy("representatives").permutation(len(points)))
        targets = shuffled[: self.representatives].sort().values
        weights = coverage_weights(scores[targets]) if self.weighted else torch.ones(len(targets), dtype=torch.float64)
        coverage = Coverage(points, targets, weights, self.bandwidth or covering_radius(points, known, n, shuffled))
        for block in blocks(len(known)):
            coverage.add(known[block])
        positions, gains = lazy_greedy(coverage, n)
        return picked(snapshot, positions, gains)


def coverage_weights(scores: torch.Tensor) -> torch.Tensor:
    """w ∈ [0, 1], (m,): scores less their minimum where that is negative, divided by the largest; 1 where that leaves only 0."""
    shifted = scores.double() / scores.double().abs().max().clamp(min=torch.finfo(torch.float64).tiny)
    shifted = shifted - shifted.min().clamp(max=0.0)
    return shifted / shifted.max() if float(shifted.max()) > 0 else torch.ones_like(shifted)


def covering_radius(points: Points, known: Points, n: int, shuffled: torch.Tensor) -> float:
    """How far a sample is from the nearest of len(known) + n: the median over up to `BLOCK` candidates, with n others drawn at random.

    A pick then serves the neighbourhood it will be nearest to, and the kernel narrows as labels grow, as in UHerding. Distances of 0
    are left out; 1 if nothing is left. `shuffled` is a random order of the points.
    """
    half = len(points) // 2
    probes, others = points[shuffled[: min(BLOCK, half)]], shuffled[half:][:n]
    nearest = torch.full((len(probes),), torch.inf, dtype=torch.float64)
    for block in blocks(len(others)):
        lower(nearest, probes, points[others[block]])
    for block in blocks(len(known)):
        lower(nearest, probes, known[block])
    nearest = nearest[nearest > 0]
    return float(nearest.median().sqrt()) if len(nearest) else 1.0


class Coverage:
    """The squared distance of each target (t,) to its nearest centre so far, and what another centre would add."""

    def __init__(self, points: Points, targets: torch.Tensor, weights: torch.Tensor, bandwidth: float) -> None:
        self.points = points
        self._targets = targets
        self._shares = weights / weights.sum()
        self._scale = -1.0 / bandwidth**2
        self._nearest = torch.full((len(targets),), torch.inf, dtype=torch.float64)

    def add(self, centres: ProductRows) -> None:
        """At most a block of centres."""
        for block in blocks(len(self._targets)):
            lower(self._nearest[block], self._target(block), centres)

    def gains(self, which: torch.Tensor) -> torch.Tensor:
        """What each of `which` (at most a block) would add, as single-precision numbers."""
        some = self.points[which]
        total = torch.zeros(len(which), dtype=torch.float64)
        for block in blocks(len(self._targets)):
            kernel = distances(self._target(block), some).mul_(self._scale).exp_()
            covered = (self._nearest[block] * self._scale).exp_()
            total += self._shares[block] @ kernel.sub_(covered[:, None]).clamp_(min=0.0)
        return total.float().double()

    def _target(self, block: slice) -> ProductRows:
        return self.points[block if len(self._targets) == len(self.points) else self._targets[block]]


def lazy_greedy(coverage: Coverage, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions of n picks and the coverage each added. Ties go to the lowest position."""
    size = len(coverage.points)
    bounds = torch.cat([coverage.gains(torch.arange(block.start, block.stop)) for block in blocks(size)])
    positions, added = torch.empty(n, dtype=torch.int64), torch.empty(n, dtype=torch.float64)
    for pick in range(n):
        fresh = torch.full((size,), pick == 0)
        batch = FIRST_BATCH
        while not bool(fresh[head := int(bounds.argmax())]):
            stale = torch.where(fresh, -torch.inf, bounds)
            again = largest(stale, batch)
            again = again[stale[again] > -torch.inf]
            bounds[again] = coverage.gains(again)
            fresh[again] = True
            batch = min(2 * batch, BLOCK)
        positions[pick], added[pick] = head, bounds[head]
        bounds[head] = -torch.inf
        coverage.add(coverage.points[positions[pick : pick + 1]])
    return positions, added


@dataclass(frozen=True)
class Points:
    """Rows read in float64, of unit length if `unit` (rows of 0 stay 0)."""

    rows: ProductRows
    unit: bool

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice | torch.Tensor) -> ProductRows:
        factors = [factor.double() for factor in part(self.rows, which).factors]
        return ProductRows(tuple(torch.nn.functional.normalize(factor, eps=1e-300) if self.unit else factor for factor in factors))


def distances(a: ProductRows, b: ProductRows) -> torch.Tensor:
    """‖a_i − b_j‖², (len(a), len(b))."""
    return squared(a, b, a.squared_norms(), b.squared_norms())


def lower(nearest: torch.Tensor, rows: ProductRows, centres: ProductRows) -> None:
    """nearest_i ← min(nearest_i, min over centres c of ‖row_i − c‖²), in place."""
    torch.minimum(nearest, distances(rows, centres).amin(1), out=nearest)
