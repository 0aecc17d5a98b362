"""Distances between samples, and the samples farthest from all others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from ally.data import blocks
from ally.learning.snapshot import View
from ally.rng import Streams
from ally.selection.base import largest


@dataclass(frozen=True, eq=False)
class Distances:
    """Euclidean distances in float64 by inner products, around an origin near the samples so that an offset costs no
    precision."""

    origin: torch.Tensor
    """(d,) float64."""

    def squared(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """‖a_i − b_j‖², (A, d), (B, d) → (A, B)."""
        x, y = a.double() - self.origin, b.double() - self.origin
        return (x @ y.T).mul_(-2.0).add_(x.square().sum(1)[:, None]).add_(y.square().sum(1)).clamp_(min=0.0)

    def near(self, points: torch.Tensor, others: torch.Tensor, limit: float) -> torch.Tensor:
        """Whether any of `others` lies within a squared distance of `limit`, (n, d), (m, d) → (n,) bool."""
        found = torch.zeros(len(points), dtype=torch.bool)
        for block in blocks(len(points)):
            for part in blocks(len(others)):
                found[block] |= (self.squared(points[block], others[part]) <= limit).any(1)
        return found

    def repeats(self, points: torch.Tensor, limit: float) -> torch.Tensor:
        """Whether a point lies that close to an earlier one that is not itself such a repeat, (n, d) → (n,) bool."""
        found = torch.zeros(len(points), dtype=torch.bool)
        for block in blocks(len(points)):
            for earlier in blocks(block.start):
                close = self.squared(points[block], points[earlier]) <= limit
                found[block] |= (close & ~found[earlier]).any(1)
            close, here = self.squared(points[block], points[block]) <= limit, found[block]
            for place in range(1, len(here)):
                here[place] |= (close[place, :place] & ~here[:place]).any()
        return found


NEIGHBOURS = 5
SAMPLE = 4096


def farthest(view: View, count: int, metric: Distances, streams: Streams) -> torch.Tensor:
    """Positions of up to `count` samples, farthest first, (count,), by the distance to the fifth nearest of a seeded
    sample.

    Points no farther than the median are left out, so copies are never outliers among themselves.
    """
    sample = torch.from_numpy(streams.numpy("outlier sample").permutation(len(view))[:SAMPLE]).sort().values
    neighbours = min(NEIGHBOURS, len(sample) - 1)
    if count == 0 or neighbours == 0:
        return torch.empty(0, dtype=torch.int64)
    gaps = view.mapped(partial(_gaps, metric, sample, view.points[sample], neighbours))
    found = largest(gaps, count)
    return found[gaps[found] > gaps.median()]


def _gaps(
    metric: Distances, sample: torch.Tensor, others: torch.Tensor, neighbours: int, view: View, start: int
) -> torch.Tensor:
    """Squared distances to the nearest of `others` number `neighbours`, (n,). `others` are the samples at positions
    `sample`; no sample is its own neighbour."""
    gaps = torch.empty(len(view), dtype=torch.float64)
    for block in blocks(len(view)):
        squared = metric.squared(view.points[block], others)
        first = start + block.start
        themselves = ((sample >= first) & (sample < first + len(squared))).nonzero().squeeze(1)
        squared[sample[themselves] - first, themselves] = torch.inf
        gaps[block] = squared.kthvalue(neighbours, dim=1).values
    return gaps
