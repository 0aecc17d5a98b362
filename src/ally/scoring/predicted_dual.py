"""ALLY's score: the dual variable a sample would have if it were labelled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from ally.checks import check_number
from ally.errors import InputError
from ally.learning.dual_head import DualHead, RidgeHead
from ally.learning.head_features import Labelled
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.types import BOTH_TASKS, Task

ROUNDING = 1e-9
"""Tolerance of a score: where all λ are equal, no candidate is above the others."""
EXAMPLES = 2000
"""The most candidates that a head learns from to predict the duals of the others."""


@dataclass(frozen=True)
class PredictedDual:
    """log(1 + λ), predicted by a head fitted to the λ of the labelled samples, or read directly if the objective has
    duals for the pool.

    If some of those are unknown (NaN), the head predicts them from the candidates that have one.

    An upper bound on the dual of a query keeps out collective outliers: samples that models fail to learn, such as
    mislabelled ones (paper, section 4.4). Candidates with a predicted λ above the bound are set aside, whatever the
    selection. If too few others are left, the lowest of them fill the batch and the query's notes say so. Set the bound
    with `cap`, which follows the labels, or with `ceiling`.

    Attributes:
        head: how λ is predicted.
        cap: set aside candidates whose predicted λ is above this quantile of the labelled samples' λ; None for no
            bound. With ``head=PaperHead()``, which sees embeddings, use 1 minus twice the share of outliers you expect
            among the labels, or 0.8 if you do not know. The default head for classification sees only the uncertainty
            and sets aside many good samples too; use 0.9 with it. The level ε must be tight enough that most labelled λ
            are positive, as in the strategy ally-clusters.
        ceiling: the same bound as a value of λ; None for no bound. If both are set, the lower one applies.
    """

    head: DualHead = RidgeHead()
    cap: float | None = None
    ceiling: float | None = None
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.cap is not None and not 0 < self.cap <= 1:
            raise InputError.about("cap", self.cap, "is not a quantile; pass a number in (0, 1], or None")
        if self.ceiling is not None:
            check_number("ceiling", self.ceiling, positive=True)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        notes: tuple[str, ...] = ()
        if snapshot.candidate_duals is not None and not bool(snapshot.candidate_duals.isnan().all()):
            values, report, notes = self._held(snapshot, snapshot.candidate_duals, streams)
        elif snapshot.duals is not None:
            labelled = Labelled.of_known(snapshot)
            head = self.head.fit(labelled, streams.child("dual head"))
            values = head(snapshot.candidates)
            zero = _zero(head(labelled.view), labelled.duals)
            report = {"rank_quality": head.rank_quality, "positive": _share(values > zero)}
            if snapshot.candidate_duals is not None and len(values):
                notes = (
                    f"training visited no candidate: their {len(values)} duals are predicted from the labelled ones'",
                )
        else:
            raise InputError(
                "the predicted dual needs an objective with constraints; use objective='pdcl', 'feasibility', "
                "'resilient' or 'pdcl-unlabelled'"
            )
        bound = self._bound(snapshot)
        if bound < math.inf:
            report["bound"] = bound
        # A head may rank below 0, and exp overflows above 700.
        duals = torch.expm1(values.clamp(min=0.0, max=700.0))
        return Scored(values, report, math.log1p(bound) + ROUNDING, notes, duals)

    def _bound(self, snapshot: Snapshot) -> float:
        """The largest λ that may be queried."""
        bound = math.inf if self.ceiling is None else self.ceiling
        if self.cap is None:
            return bound
        duals = snapshot.candidate_duals if snapshot.duals is None else snapshot.duals
        assert duals is not None
        known = duals[~duals.isnan()].double()
        return min(bound, float(known.quantile(self.cap))) if len(known) else bound

    def _held(
        self, snapshot: Snapshot, duals: torch.Tensor, streams: Streams
    ) -> tuple[torch.Tensor, dict[str, Any], tuple[str, ...]]:
        """Scores, report and notes if the candidates have their own λ (n,), not all of them NaN."""
        values, known = torch.log1p(duals.double()), ~duals.isnan()
        report: dict[str, Any] = {"positive": _share(values[known] > 0)}
        if bool(known.all()):
            return values, report, ()
        head = self.head.fit(_examples(snapshot.candidates, duals, known, streams), streams.child("dual head"))
        values = torch.where(known, values, head(snapshot.candidates))
        missing = int((~known).sum())
        report |= {"rank_quality": head.rank_quality, "predicted": missing}
        note = (
            f"training did not visit {missing} of {len(duals)} candidates: their duals are predicted from the others'"
        )
        return values, report, (note,)


def _examples(candidates: View, duals: torch.Tensor, known: torch.Tensor, streams: Streams) -> Labelled:
    """Candidates with a known λ for a head to learn from, at most `EXAMPLES`; their predictions stand in for labels."""
    places = known.nonzero().squeeze(1)
    drawn = torch.randperm(len(places), generator=streams.torch("dual examples"))[:EXAMPLES].sort().values
    some = candidates.at(places[drawn])
    return Labelled(some, some.predictions.double(), duals[places[drawn]])


def _zero(predicted: torch.Tensor, duals: torch.Tensor) -> float:
    """The head's prediction for a dual of zero: as many labelled samples are predicted above it as have a positive
    dual."""
    zeros = int((duals <= 0).sum())
    return -math.inf if zeros == 0 else float(predicted.kthvalue(zeros).values)


def _share(chosen: torch.Tensor) -> float | None:
    return float(chosen.double().mean()) if len(chosen) else None
