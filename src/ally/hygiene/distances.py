"""Samples that are near others, and the samples farthest from all others."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from ally.features import ProductRows
from ally.learning.snapshot import View
from ally.neighbours import find_nearest
from ally.neighbours.loops import lower_to_row
from ally.rng import Streams
from ally.selection.base import largest
from ally.selection.points import Points

NEIGHBOURS = 5
SAMPLE = 4096


def find_near(points: torch.Tensor, others: torch.Tensor, limit: float) -> torch.Tensor:
    """Whether any of `others` lies within a squared distance of `limit`, (n, d), (m, d) → (n,) bool."""
    return torch.from_numpy(find_nearest(_rows(points), _rows(others)).squared[:, 0] <= limit)


def find_repeats(points: torch.Tensor, limit: float) -> torch.Tensor:
    """Whether a point lies that close to an earlier one that is not itself such a repeat, (n, d) → (n,) bool."""
    repeats, numbers, rows = np.zeros(len(points), dtype=bool), np.arange(len(points)), _rows(points)
    close = np.flatnonzero(find_nearest(rows, rows, marks=(numbers, numbers)).squared[:, 0] <= limit)
    gaps, values = np.full(len(close), np.inf), rows[close][0]
    for place, number in enumerate(close):
        repeats[number] = gaps[place] <= limit
        if not repeats[number]:
            lower_to_row(gaps[place:], (values[place:],), (values[place : place + 1],))
    return torch.from_numpy(repeats)


def farthest(view: View, count: int, streams: Streams) -> torch.Tensor:
    """Positions of up to `count` samples, farthest first, (count,), by the distance to the fifth nearest of a seeded
    sample.

    Points no farther than the median are left out, so copies are never outliers among themselves.
    """
    sample = torch.from_numpy(streams.numpy("outlier sample").permutation(len(view))[:SAMPLE]).sort().values
    neighbours = min(NEIGHBOURS, len(sample) - 1)
    if count == 0 or neighbours == 0:
        return torch.empty(0, dtype=torch.int64)
    gaps = view.mapped(partial(_measure_gaps, sample, view.points[sample], neighbours))
    found = largest(gaps, count)
    return found[gaps[found] > gaps.median()]


def _measure_gaps(sample: torch.Tensor, others: torch.Tensor, neighbours: int, view: View, start: int) -> torch.Tensor:
    """Squared distances to the nearest of `others` number `neighbours`, (n,). `others` are the samples at positions
    `sample`; no sample is its own neighbour."""
    marks = np.arange(start, start + len(view)), sample.numpy()
    return torch.from_numpy(find_nearest(_rows(view.points), _rows(others), neighbours, marks).squared[:, -1].copy())


def _rows(points: torch.Tensor) -> Points:
    return Points(ProductRows((points,)))
