r"""Stochastic batches: the top n after Gumbel noise (Kirsch et al., *Stochastic Batch Acquisition*).

Adding independent Gumbel noise to log-weights and taking the top n draws without replacement from the Plackett–Luce model
with those weights; for n > 1 inclusion shares are not proportional to the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from ally.errors import InputError
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest, picked
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class Perturbed:
    r"""log-weight of a score s: ``softmax`` β·s, ``power`` β·log s (s ≤ 0 only after all positive ones), ``softrank`` −β·log rank."""

    form: Literal["softmax", "power", "softrank"] = "power"
    sharpness: float = 1.0
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.form not in ("softmax", "power", "softrank") or not self.sharpness > 0:
            raise InputError(f"{self}: form is 'softmax', 'power' or 'softrank', and sharpness a number > 0")

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        noise = torch.from_numpy(streams.numpy("gumbel noise").gumbel(size=len(scores)))
        keys = self.sharpness * self._log_weights(scores) + noise
        if self.form == "power":
            positive = (scores > 0).nonzero().squeeze(1)
            others = (scores <= 0).nonzero().squeeze(1)
            first = positive[largest(keys[positive], min(n, len(positive)))]
            best = torch.cat([first, others[largest(noise[others], n - len(first))]]) if len(first) < n else first
        else:
            best = largest(keys, n)
        return picked(snapshot, best, scores[best])

    def _log_weights(self, scores: torch.Tensor) -> torch.Tensor:
        if self.form == "softmax":
            return scores
        if self.form == "power":
            return scores.clamp(min=torch.finfo(torch.float64).tiny).log()
        ranks = torch.empty_like(scores)
        ranks[torch.sort(scores, descending=True, stable=True).indices] = torch.arange(1, len(scores) + 1, dtype=scores.dtype)
        return -ranks.log()
