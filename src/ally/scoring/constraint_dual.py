r"""The dual that a constraint on a candidate would have, in closed form.

A candidate has no label. Add to the resilient problem (`constrained.violations`), for each label y, a constraint
:math:`\ell'(f(x), y) \le \varepsilon + u_y` that weighs δ p(y|x). As δ → 0 the duals of x add up to

.. math:: \lambda(x) = \sum_y p(y|x)\, \min(\rho\,[\ell'(f(x), y) - \varepsilon]_+, \kappa),

and −λ(x) is the change of the optimum per unit of ε and of δ. Nothing is learned for it. A model that is trained
plainly is the limit of resilient ones as κ → 0, where λ(x) / κ depends on κ / ρ alone: there only the ratio of cap and
slope matters, and the cap sets the unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch

from ally.checks import check_number
from ally.constrained.violations import ClassConstraint, Constraint, MarginViolation, NumberConstraint
from ally.data import blocks
from ally.errors import InputError
from ally.learning.posterior import SpreadReadout
from ally.learning.readouts import Readout
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.types import Task

Label = Literal["predicted", "mean"]
ROUNDING = 1e-6
"""The cap's share by which a dual may be above it: float32 probabilities do not add up to 1 exactly, and samples that
tie at the cap are not to be ranked by where they are clipped."""


@dataclass(frozen=True)
class ConstraintDual:
    """λ = min(ρ[ℓ' − ε]₊, κ): the dual of a constraint on the candidate's prediction, in closed form. If the model has
    no spread of its numbers, all scores are equal and a weighted selection covers the pool; in `DualByTask` also if it
    gives no probabilities. Alone it refuses such a classifier.

    Attributes:
        constraint: ℓ': `MarginViolation`, `ProbabilityShortfall` or `CrossEntropy` for classes, `AbsoluteError` or
            `SquaredError` for numbers, measured in median spreads of the pool.
        level: ε: up to here a violation costs nothing.
        slope: ρ: how fast the dual grows with the violation.
        cap: κ, the largest dual; it is reached at a violation of κ/ρ beyond the level.
        label: classes: ``"predicted"`` reads ℓ' under the likeliest label, ``"mean"`` weighs all labels by their
            probability. Numbers have the mean over y ~ N(f, spread²). None: predicted for classes, mean for numbers.
    """

    constraint: Constraint = MarginViolation()
    level: float = 0.0
    slope: float = 1.0
    cap: float = 1.0
    label: Label | None = None
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        constraint = self.constraint
        if isinstance(constraint, (type, str)) or not isinstance(constraint, ClassConstraint | NumberConstraint):
            raise InputError.about("constraint", constraint, "is not a constraint; pass one such as MarginViolation()")
        check_number("level", self.level)
        for name in ("slope", "cap"):
            check_number(name, getattr(self, name), positive=True)
        if not math.isfinite(self.cap / self.slope):
            raise InputError(
                f"cap / slope is {self.cap:g} / {self.slope:g}, out of reach of float64; raise slope or lower cap"
            )
        if self.label not in (None, "predicted", "mean"):
            raise InputError.about("label", self.label, "; pass 'predicted', 'mean' or None")
        if self.label == "predicted" and isinstance(constraint, NumberConstraint):
            raise InputError(f"label='predicted': a predicted number has no error for {constraint}; pass label='mean'")

    @property
    def tasks(self) -> frozenset[Task]:
        return self.constraint.tasks

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return (SpreadReadout(),) if isinstance(self.constraint, NumberConstraint) else ()

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        constraint, candidates = self.constraint, snapshot.candidates
        if isinstance(constraint, ClassConstraint):
            if candidates.probabilities is None:
                return _score_alike(snapshot, "the model gives no probabilities")
            return self._report(candidates.mapped(partial(_class_duals, self, constraint)))
        spread = candidates.readouts.get(self.readouts[0].name)
        if spread is None or not bool((spread > 0).any()):
            return _score_alike(snapshot, "the model gives no uncertainty for its predictions")
        return self._report(constraint.average_dual(_in_medians(spread), self.level, self.slope, self.cap))

    def price_violations(self, violations: torch.Tensor) -> torch.Tensor:
        """min(ρ[ℓ' − ε]₊, κ)."""
        return (self.slope * (violations - self.level)).clamp(0.0, self.cap * (1.0 + ROUNDING))

    def _report(self, duals: torch.Tensor) -> Scored:
        kind = type(self.constraint).__name__
        notes: tuple[str, ...] = ()
        if len(duals) > 1 and bool((duals >= self.cap).all()):
            notes = (
                f"every dual of {kind} is at its cap: all violations are {self.cap / self.slope:.3g} or more above "
                f"level={self.level:g}, and nothing ranks the candidates; if they differ, raise cap or lower slope",
            )
        elif len(duals) > 1 and not bool(duals.any()):
            notes = (
                f"every dual of {kind} is 0: no violation is above level={self.level:g}, and nothing ranks the "
                "candidates",
            )
        return Scored(duals, {"constraint": kind}, notes=notes, duals=duals)


def _class_duals(score: ConstraintDual, constraint: ClassConstraint, view: View, start: int) -> torch.Tensor:
    assert view.probabilities is not None
    duals = torch.empty(len(view), dtype=torch.float64)
    for block in blocks(len(view)):
        p = view.probabilities[block].double()
        violations = constraint.measure_labels(p)
        if score.label == "mean":
            duals[block] = (p * score.price_violations(violations)).sum(1)
        else:
            duals[block] = score.price_violations(violations.gather(1, p.argmax(1, keepdim=True)).squeeze(1))
    return duals


def _in_medians(spread: torch.Tensor) -> torch.Tensor:
    """Spreads (n,) in units of their median; of the median of those above 0, where it is 0."""
    values = spread.double()
    middle = values.median()
    return values / (middle if float(middle) > 0 else values[values > 0].median())


def _score_alike(snapshot: Snapshot, reason: str) -> Scored:
    """Equal scores, with a note that says why."""
    values = torch.ones(len(snapshot.candidates), dtype=torch.float64)
    return Scored(
        values,
        {"constraint": None},
        notes=(f"{reason}: all candidates weigh the same, and the selection decides alone",),
    )
