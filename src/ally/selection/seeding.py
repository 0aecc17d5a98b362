"""Where k-means starts: greedy k-means++ (Arthur & Vassilvitskii, 2007) on a grid of integers, where sums are exact in
any order."""

from __future__ import annotations

import math

import numpy as np
import torch

from ally.data import blocks

CANDIDATES = 48
"""Draws measured together."""
POINTS, PER_SEED = 2**13, 64
"""Starts are chosen among `PER_SEED` points each, but at least `POINTS`; more points take longer and hardly lower the
final inertia."""


def seeds(x: torch.Tensor, k: int, rng: np.random.Generator) -> torch.Tensor:
    """Positions of up to k distinct points, (m, d) → (k,). Each pick draws 2 + ln k points in proportion to their
    squared distance and takes the one that lowers the sum of squared distances most.

    Draws for several picks are measured together. If a pick has come nearer to a draw since, the draw is kept with
    probability in proportion, as if it were drawn now. With very many points, only a random sample is considered. The
    result has fewer than k points if all others in that sample are copies of them.
    """
    among = np.arange(len(x))
    if len(x) > (most := max(POINTS, PER_SEED * k)):
        among = np.sort(rng.choice(len(x), most, replace=False, shuffle=False))
    grid = on_grid(x[torch.from_numpy(among)])
    trials = 2 + int(math.log(k))
    picks = [int(rng.integers(len(grid)))]
    nearest = _distances(grid, torch.tensor(picks))[0]
    while len(picks) < k:
        edges = nearest.cumsum(0, dtype=torch.float64)
        if not float(edges[-1]) > 0:
            break
        size = trials * max(1, min(len(picks) // 4, CANDIDATES // trials, k - len(picks)))
        drawn = torch.searchsorted(edges, torch.from_numpy(rng.random(size)) * edges[-1], right=True)
        needed = torch.from_numpy(rng.random(size)) * nearest[drawn]
        squared = _distances(grid, drawn)
        tried: list[int] = []
        for number, row in enumerate(drawn.tolist()):
            if float(nearest[row]) > float(needed[number]):
                tried.append(number)
            if len(tried) == trials and len(picks) < k:
                lowered = torch.minimum(squared[tried], nearest)
                best = int(lowered.sum(1, dtype=torch.float64).argmin())
                picks.append(int(drawn[tried[best]]))
                nearest, tried = lowered[best], []
        nearest = nearest.clone()
    return torch.from_numpy(among[picks])


def on_grid(x: torch.Tensor) -> torch.Tensor:
    """Points with integer coordinates in proportion to x, up to eight times its root mean square, then 1 and ‖x‖²,
    (m, d + 2).

    Squared distances are at most 2**24, so they are exact in single precision, and their sums in double precision.
    """
    most = max(1, min(127, int(2**11 / math.sqrt(x.shape[1]))))
    total = sum(float(np.square(x[block].numpy(), dtype=np.float64).sum()) for block in blocks(len(x)))
    step = max(8.0 / most * math.sqrt(total / x.numel()), torch.finfo(torch.float32).tiny)
    grid = torch.ones(len(x), x.shape[1] + 2)
    for block in blocks(len(x)):
        grid[block, :-2] = (x[block] / step).round_().clamp_(-most, most)
        grid[block, -1] = grid[block, :-2].square().sum(1)
    return grid


def _distances(grid: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Squared distances from all points to `rows` (r,), (r, m)."""
    centres = torch.cat([-2.0 * grid[rows, :-2], grid[rows, -1:], grid[rows, -2:-1]], dim=1)
    return centres @ grid.T
