"""The default score: how much of a candidate's error more labels can remove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.checks import check_number
from ally.errors import InputError
from ally.learning.posterior import SpreadReadout
from ally.learning.readouts import Readout
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.scoring.uncertainty import Margin
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class Reducible:
    """Uncertainty that more labels can remove. It does not use the loss, which follows noise.

    Classification: 1 − (p₁ − p₂), which is at most 1 however many classes are confused. Regression: the standard
    deviation of the predictions over the trees of a forest or the dropout masks of a network, capped and shrunk towards
    its mean. If the learner gives neither, all scores are equal and a weighted selection covers the pool.

    Attributes:
        bound: the largest spread that counts, in units of the median.
        share: the share of the spread in the score; the rest is its mean.
        samples: the most trees or masks to use.
    """

    bound: float = 3.0
    share: float = 0.5
    samples: int = 50
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("bound", self.bound, positive=True)
        if not 0 <= self.share <= 1:
            raise InputError.about("share", self.share, "is not a share; pass a number in [0, 1]")
        SpreadReadout(self.samples)

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return (SpreadReadout(self.samples),)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        if snapshot.task == "classification":
            if snapshot.candidates.probabilities is None:
                return _alike(snapshot, "the model gives no probabilities")
            return Scored(Margin()(snapshot, streams).scores, {"doubt": "margin"})
        spread = snapshot.candidates.readouts.get(self.readouts[0].name)
        if spread is None or not bool((spread > 0).any()):
            return _alike(snapshot, "the model gives no uncertainty for its predictions")
        values = spread.double()
        middle = float(values.median())
        values = values.clamp(max=self.bound * middle) if middle > 0 else values
        return Scored(self.share * values + (1.0 - self.share) * values.mean(), {"doubt": "spread"})


def _alike(snapshot: Snapshot, reason: str) -> Scored:
    """Equal scores, with a note that says why."""
    values = torch.ones(len(snapshot.candidates), dtype=torch.float64)
    return Scored(values, {"doubt": "none"}, notes=(f"{reason}: the batch covers the pool instead",))
