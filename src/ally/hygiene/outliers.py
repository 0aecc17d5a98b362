"""Outliers: the candidates farthest from a sample of the others."""

from __future__ import annotations

import torch

from ally.hygiene.distances import Metric
from ally.rng import Streams
from ally.selection.base import largest
from ally.sources import blocks

NEIGHBOURS = 5
SAMPLE = 4096


def farthest(points: torch.Tensor, count: int, metric: Metric, streams: Streams) -> torch.Tensor:
    """Positions of up to `count` points, farthest first, (n, d) → (count,): by distance to the fifth nearest of a
    seeded sample.

    None that is no farther than the median point, so that among copies nobody is an outlier.
    """
    sample = torch.from_numpy(streams.numpy("outlier sample").permutation(len(points))[:SAMPLE]).sort().values
    neighbours = min(NEIGHBOURS, len(sample) - 1)
    if count == 0 or neighbours == 0:
        return torch.empty(0, dtype=torch.int64)
    others = points[sample]
    gaps = torch.empty(len(points), dtype=torch.float64)
    for block in blocks(len(points)):
        squared = metric.squared(points[block], others)
        themselves = ((sample >= block.start) & (sample < block.stop)).nonzero().squeeze(1)
        squared[sample[themselves] - block.start, themselves] = torch.inf
        gaps[block] = squared.kthvalue(neighbours, dim=1).values
    found = largest(gaps, count)
    return found[gaps[found] > gaps.median()]
