"""Where k-means starts: greedy k-means++ (Arthur & Vassilvitskii, 2007) on a grid of integers, where sums are exact in
any order."""

from __future__ import annotations

import math

import numpy as np
import torch

from ally.sources import blocks

CANDIDATES = 48
"""Draws that are measured together."""
POINTS, PER_SEED = 2**13, 64
"""Starts are looked for among `PER_SEED` points for each, but at least `POINTS`: more take longer and hardly lower the
final inertia."""


def seeds(x: torch.Tensor, k: int, rng: np.random.Generator) -> torch.Tensor:
    """Positions of up to k distinct points, (m, d) → (k,): of 2 + ln k drawn by squared distance, the one that lowers
    its sum most.

    Draws for several picks are measured together. One that a pick has come nearer to since is kept in proportion, so
    that it is as if drawn now. Of very many points some are looked at, drawn at random. There are fewer than k if the
    rest of these lies on top of them.
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
    """Points of whole coordinates in proportion to x, up to eight times its root mean square, then 1 and ‖x‖², (m, d +
    2).

    Squared distances stay up to 2**24, so that single precision computes them, and double precision their sums, without
    error.
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
    """Squared distances of all points to `rows` (r,), (r, m)."""
    centres = torch.cat([-2.0 * grid[rows, :-2], grid[rows, -1:], grid[rows, -2:-1]], dim=1)
    return centres @ grid.T
