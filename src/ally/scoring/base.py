"""The contract of a score."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch

from ally.errors import BrokenPart, NonFiniteScore
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.types import Task


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of all candidates, (n,) float64 in the order of ``snapshot.candidates``, with figures for the report
    and notes for the user."""

    scores: torch.Tensor
    report: dict[str, Any] = field(default_factory=dict)
    bound: float = math.inf
    """Candidates that score above this are set aside: no selection sees them, unless fewer than n others are left."""
    notes: tuple[str, ...] = ()
    duals: torch.Tensor | None = None
    """λ of each candidate, (n,) float64, where the score is made of duals."""


@runtime_checkable
class Score(Protocol):
    """A frozen dataclass that scores a snapshot."""

    @property
    def tasks(self) -> frozenset[Task]: ...

    reads: ClassVar[bool]
    """Whether the score reads the snapshot; if nothing does, nothing is trained.

    A score may also set ``constant = True`` (all candidates score the same) and ``calibrated = True`` (it needs
    predictions for held-out labels)."""

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored: ...


def check_scores(scored: Scored, snapshot: Snapshot, score: Score) -> None:
    """Raises if a score is missing, NaN or infinite."""
    if tuple(scored.scores.shape) != (len(snapshot.candidates),):
        raise BrokenPart(f"{score} gave shape {tuple(scored.scores.shape)} for {len(snapshot.candidates)} candidates")
    bad = ~torch.isfinite(scored.scores)
    if bool(bad.any()):
        row = int(snapshot.candidates.rows[int(bad.nonzero()[0])])
        raise NonFiniteScore(
            f"{score} gave {int(bad.sum())} scores that are NaN or infinite, the first for row {row}; the round stops"
        )
