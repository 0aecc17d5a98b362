"""ALLY's score: the dual variable a sample would have if it were labelled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.checks import check_number
from ally.errors import InputError
from ally.learning.dual_head import DualHead, RidgeHead
from ally.learning.head_features import Labelled
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class PredictedDual:
    """log(1 + λ) predicted by a head fitted on the labelled samples' λ; read directly where the objective held duals for the pool.

    Attributes:
        head: how λ is predicted.
        cap: quantile of the candidates' scores above which all count alike, against collective outliers; None for no cap.
        ceiling: the same as a value of λ; None for none.
    """

    head: DualHead = RidgeHead()
    cap: float | None = None
    ceiling: float | None = None
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.cap is not None and not 0 < self.cap <= 1:
            raise InputError(f"cap={self.cap} is not a quantile; pass a number in (0, 1], or None")
        if self.ceiling is not None:
            check_number("ceiling", self.ceiling, positive=True)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        if snapshot.candidate_duals is not None:
            values = torch.log1p(snapshot.candidate_duals.double())
            report = {"positive": _share(values > 0)}
        elif snapshot.duals is not None:
            assert snapshot.labels is not None
            head = self.head.fit(Labelled(snapshot.labelled, snapshot.labels, snapshot.duals), streams.child("dual head"))
            values = head(snapshot.candidates)
            zero = _zero(head(snapshot.labelled), snapshot.duals)
            report = {"rank_quality": head.rank_quality, "positive": _share(values > zero)}
        else:
            raise InputError("the predicted dual needs an objective with constraints; use objective='pdcl' or 'feasibility'")
        if self.cap is not None and len(values):
            place = max(1, round(self.cap * len(values)))
            values = values.clamp(max=float(values.kthvalue(place).values))
        if self.ceiling is not None:
            values = values.clamp(max=math.log1p(self.ceiling))
        return Scored(values, report)


def _zero(predicted: torch.Tensor, duals: torch.Tensor) -> float:
    """What the head predicts for a dual of zero: of the labelled samples, as many are predicted above it as have a positive dual."""
    zeros = int((duals <= 0).sum())
    return -math.inf if zeros == 0 else float(predicted.kthvalue(zeros).values)


def _share(chosen: torch.Tensor) -> float | None:
    return float(chosen.double().mean()) if len(chosen) else None
