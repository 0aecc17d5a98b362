r"""Gradient ascent on the sample.

.. math:: x \leftarrow \Pi\bigl[x + \eta\, s \odot g / \lVert g \rVert\bigr],\quad g = s \odot \nabla_x \log(1 +
\hat\lambda(x))

s is the spread of each feature, ‖·‖ the root mean square over features, Π the projection onto the valid range. A step
that would lower the predicted dual is not taken; `Climb` describes what happens instead, and how a stuck sample gets
away.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ally.checks import check_count, check_number
from ally.data import Checked, as_source, blocks
from ally.errors import InputError
from ally.generation.bounds import check_bounds
from ally.generation.climb import Climb, Rules
from ally.generation.dual import as_dual
from ally.generation.progression import Progression, join
from ally.generation.smooth import soften_by
from ally.rng import Streams, streams
from ally.types import AnyArray, Progress


def ascend(
    model: Any,
    X: Any,
    *,
    bounds: Any,
    steps: int = 200,
    step_size: float = 0.01,
    every: int | None = None,
    ceiling: float | None = None,
    jumps: int = 6,
    smooth: Any = None,
    random_state: Any = 0,
    progress: Progress | None = None,
) -> Progression:
    """Move each sample to a higher predicted dual; the model does not change.

    Args:
        model: a fitted `ConstrainedClassifier` or `ConstrainedRegressor`, a `DualOf`, or a pair (Fit, FittedHead).
        X: (n, *shape) where to start, within `bounds`.
        bounds: ``(low, high)``, numbers or arrays of the shape of a sample: ``(0, 255)``, or `bounds_of` the data.
        steps: steps per sample; each evaluates one gradient.
        step_size: η, the length of a step: root mean square over features, in units of their spread (the standard
            deviation that the model standardises by; the width of `bounds` for a model that does not).
        every: steps between the moments that are kept; a fifth of `steps` if None. The first and the last are always
            kept.
        ceiling: no step leads above this predicted λ, against collective outliers; None for no ceiling.
        jumps: how often a sample that is stuck may jump. The last moment is each sample's best point.
        smooth: samples (m, *shape), such as the pool: steps are mixtures of the ways in which these differ, so that
            images change in strokes rather than in single pixels. None for the plain gradient.
        random_state: directions of the jumps.
    """
    steps, step_size = check_count("steps", steps), check_number("step_size", step_size, positive=True)
    every = max(1, steps // 5) if every is None else check_count("every", every)
    top = torch.inf if ceiling is None else float(np.log1p(check_number("ceiling", ceiling, positive=True)))
    dual, source = as_dual(model), as_source(X)
    starts = np.asarray(Checked(source).read(np.arange(len(source))), dtype=np.float64)
    low, high = check_bounds(bounds, source.shape)
    _ensure_within(starts, low, high)
    kept = np.asarray([*range(0, steps, every), steps])
    width = torch.tensor(np.where(high > low, high - low, 1.0))
    spread = (dual.scale if dual.standardized else width).expand(source.shape).reshape(-1)
    full = step_size * math.sqrt(math.prod(source.shape))
    rules = Rules(
        torch.tensor(low).flatten(),
        torch.tensor(high).flatten(),
        spread,
        full,
        top,
        check_count("jumps", jumps, least=0),
        None if smooth is None else soften_by(smooth, spread),
    )
    seeds = streams(random_state)
    parts = []
    for block in blocks(len(starts)):
        flat = torch.from_numpy(starts[block]).flatten(1)
        climb = Climb(dual, source.shape, flat, rules, lambda jump: _direction(seeds, jump, len(spread)))
        moments = []
        for step in range(steps + 1):
            if step:
                climb.step(step)
            if step == steps:
                climb.settle()
            if step in kept:
                moments.append(climb.moment())
            if progress is not None:
                progress("ascend", block.start + (block.stop - block.start) * step // steps, len(starts))
        parts.append((moments, climb.stops, climb.jumped.tolist()))
    return join(kept, parts, dual.fit, (low, high), smooth is not None)


def _direction(seeds: Streams, jump: int, size: int) -> torch.Tensor:
    """The same for every sample, so that none depends on its company."""
    return torch.from_numpy(seeds.numpy(f"jump {jump}").standard_normal(size))


def _ensure_within(starts: AnyArray, low: AnyArray, high: AnyArray) -> None:
    outside = (starts < low) | (starts > high)
    if outside.any():
        sample, *place = (int(k) for k in np.argwhere(outside)[0])
        where = tuple(place)
        raise InputError(
            f"start {sample} holds {starts[(sample, *where)]:g} at feature {where}, outside its bounds "
            f"{low[where]:g} to {high[where]:g}; widen the bounds or clip the start"
        )
