r"""Stochastic batches: the top n after Gumbel noise (Kirsch et al., *Stochastic Batch Acquisition*).

Adding independent Gumbel noise to log-weights and taking the top n is a draw without replacement from the Plackett–Luce
model with those weights. For n > 1 the inclusion probabilities are not proportional to the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, cast

import numpy as np
import torch

from ally.errors import InputError
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest, picked
from ally.selection.shards import Shard, shard_crew
from ally.selection.ties import TIES, tie_order
from ally.selection.top import NOBODY, RUN, Leaders, joined, overtaken
from ally.types import BOTH_TASKS, Task

Form = Literal["softmax", "power", "softrank"]


@dataclass(frozen=True)
class Perturbed:
    r"""The log-weight of a score s is β·s for ``softmax``, β·log s for ``power`` (s ≤ 0 comes after all positive
    scores), and −β·log rank for ``softrank``."""

    form: Form = "power"
    sharpness: float = 1.0
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.form not in ("softmax", "power", "softrank") or not self.sharpness > 0:
            raise InputError(f"{self}: form is 'softmax', 'power' or 'softrank', and sharpness a number > 0")

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        ranked = scores
        if self.form == "softrank":
            ranked = ranks(scores, torch.from_numpy(tie_order(snapshot.candidates.rows, streams.seed(TIES))))
        with shard_crew(snapshot, ranked, limits, partial(Noisy, self, n, streams)) as crew:
            first, after = (joined(offers, n) for offers in zip(*crew.each("offer"), strict=True))
        best = torch.cat([first.positions, after.positions])[:n]
        return picked(snapshot, best, scores[best])

    def log_weights(self, scores: torch.Tensor) -> torch.Tensor:
        """Log-weights of positive scores, or of ranks for ``softrank``, (m,) float64."""
        if self.form == "softmax":
            return self.sharpness * scores.double()
        return (self.sharpness if self.form == "power" else -self.sharpness) * scores.double().log()


class Noisy:
    """A shard that offers its n largest noisy log-weights and, for ``power``, the n largest noise values among scores
    that have no log-weight."""

    def __init__(self, select: Perturbed, n: int, streams: Streams, shard: Shard) -> None:
        self._select, self._n, self._streams, self._shard = select, n, streams, shard

    def offer(self) -> tuple[Leaders, Leaders]:
        generator = self._streams.numpy("gumbel noise")
        # Skip one draw per candidate before this shard, so that shards do not change a candidate's noise.
        cast(np.random.PCG64, generator.bit_generator).advance(self._shard.start)
        first = after = NOBODY
        for start in range(0, len(self._shard.scores), RUN):
            scores = self._shard.scores[start : start + RUN]
            noise = torch.from_numpy(generator.gumbel(size=len(scores)))
            weighed = scores > 0 if self._select.form == "power" else torch.ones(len(scores), dtype=torch.bool)
            here, rest = (which.nonzero().squeeze(1) for which in (weighed, ~weighed))
            keys = self._select.log_weights(scores[here]) + noise[here]
            here, rest = (places + self._shard.start + start for places in (here, rest))
            first = overtaken(first, Leaders(keys, here, here), self._n)
            after = overtaken(after, Leaders(noise[~weighed], rest, rest), self._n)
        return first, after


def ranks(scores: torch.Tensor, ties: torch.Tensor) -> torch.Tensor:
    """1 for the highest score, of equal ones for the lower in `ties`, (m,) float64."""
    result = torch.empty(len(scores), dtype=torch.float64)
    result[largest(scores, len(scores), ties)] = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    return result
