"""Uncertainty of the predicted class distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch

from ally.constrained import split_top
from ally.data import blocks
from ally.learning.calibration import temperature, tempered
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.types import CLASSIFICATION, Task


@dataclass(frozen=True)
class Entropy:
    """−Σ p log p, in nats.

    Attributes:
        calibrated: use probabilities at the temperature that fits held-out labels best (`learning.calibration`): those
            of the validation samples or, without any, of each half of the labelled samples in turn, which takes two
            more trainings.
    """

    calibrated: bool = False
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    reads: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        return _scored(snapshot, entropy, self.calibrated)


@dataclass(frozen=True)
class Margin:
    """1 − (p₁ − p₂), with p₁ ≥ p₂ the two largest probabilities.

    Attributes:
        calibrated: use probabilities at the temperature that fits held-out labels best (`learning.calibration`): those
            of the validation samples or, without any, of each half of the labelled samples in turn, which takes two
            more trainings.
    """

    calibrated: bool = False
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    reads: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        return _scored(snapshot, margin, self.calibrated)


def entropy(p: torch.Tensor) -> torch.Tensor:
    """(n, C) float64 probabilities → (n,)."""
    others, doubt, _ = split_top(p)
    return -torch.xlogy(others, others).sum(1) - (1 - doubt) * torch.log1p(-doubt)


def margin(p: torch.Tensor) -> torch.Tensor:
    """(n, C) float64 probabilities → (n,)."""
    others, doubt, _ = split_top(p)
    return doubt + others.amax(1)


def _scored(snapshot: Snapshot, function: Callable[[torch.Tensor], torch.Tensor], calibrated: bool) -> Scored:
    """A function of the probabilities, block by block: as they are, or at the temperature that fits held-out labels."""
    heat = temperature(snapshot.held_out) if calibrated and snapshot.held_out is not None else None
    values = snapshot.candidates.mapped(partial(_values, function, heat))
    return Scored(values, {"temperature": heat} if calibrated else {})


def _values(
    function: Callable[[torch.Tensor], torch.Tensor], heat: float | None, view: View, start: int
) -> torch.Tensor:
    assert view.probabilities is not None
    values = torch.empty(len(view), dtype=torch.float64)
    for block in blocks(len(view)):
        p = view.probabilities[block]
        values[block] = function(p.double() if heat is None else tempered(p, heat))
    return values
