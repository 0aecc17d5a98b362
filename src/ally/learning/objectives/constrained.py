r"""Primal-dual constrained learning (Algorithm 1), its feasibility form (Appendix C) and its resilient form.

All descend :math:`r + \frac1n\sum_i \lambda_i(\ell'_i - \varepsilon_i)` in θ and ascend it in λ. r is the mean loss
plus R(f); for `Feasibility`, R(f) alone. `Resilient` also ascends :math:`-\lambda_i^2 / 2\rho`, which is what the price
of a slack adds (Hounie, Chamon and Ribeiro, 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import nn

from ally.checks import check_count, check_number
from ally.constrained import Eps, Multipliers, Power, lagrangian, resolve_eps
from ally.errors import InputError
from ally.learning.losses import Loss, resolve_loss
from ally.learning.objectives.base import Batch, Problem, Session, UnlabelledBatch, forward
from ally.learning.objectives.regularizers import Regularizer
from ally.types import FloatArray

Reading = Literal["minibatch", "all"]
Period = Literal["step", "epoch"]


@dataclass(frozen=True)
class PDCL:
    """Minimise mean ℓ subject to ℓ'_i ≤ ε_i.

    Attributes:
        eps: ε: a number, one per sample, a mapping from class, ``"auto"`` (1.15 p_u, with p_u the mean ℓ' of the
            labelled samples after an unconstrained fit), or None for the paper's value (0.2 nats; 0.1 for squared error
            of standardised targets).
        dual_lr: η_d; the step at the t-th dual move is ``dual_lr * t**-dual_decay``.
        dual_init: λ₀.
        dual_cap: upper bound κ on λ, or None. It is a linear price: a slack u in a constraint costs κu.
        primal_steps: T_p. With ``slacks="minibatch"`` a dual moves once per T_p epochs; with ``"all"`` all duals move
            after every T_p primal steps, and `dual_every` says what a primal step is.
        slacks: ``"minibatch"`` reads ℓ' from the forward pass of the primal step (no extra cost); ``"all"`` is
            Algorithm 1: every slack, after the primal steps, in evaluation mode.
        secondary_loss: ℓ' by name or as a function; None means ℓ' = ℓ.
        regularizer: R(f) added to the risk.
        weighted: False trains as if λ were 0, while λ still records the slacks; an ablation to show what the weighting
            adds.
        dual_every: a primal step of ``slacks="all"``: ``"step"`` is one step of the optimiser, on a batch; ``"epoch"``
            is one pass over the labelled samples, so each λ moves as often as in the authors' code. Without effect on
            ``slacks="minibatch"``, where each λ moves once an epoch anyway.
    """

    eps: Eps = field(default=None, hash=False)
    dual_lr: float = 0.05
    dual_init: float = 0.0
    dual_decay: float = 1 / 16
    dual_cap: float | None = None
    primal_steps: int = 1
    slacks: Reading = "minibatch"
    secondary_loss: Loss | str | None = None
    regularizer: Regularizer | None = None
    weighted: bool = True
    dual_every: Period = "step"
    needs: ClassVar[tuple[str, ...]] = ("duals",)

    def __repr__(self) -> str:
        """What was chosen; `dual_every` only if it was, so that grids made before it keep their names."""
        shown = [
            f"{item.name}={getattr(self, item.name)!r}"
            for item in fields(self)
            if item.name != "dual_every" or self.dual_every != item.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __post_init__(self) -> None:
        for name in ("dual_lr", "dual_init", "dual_decay"):
            check_number(name, getattr(self, name))
        if self.dual_cap is not None:
            check_number("dual_cap", self.dual_cap, positive=True)
        check_count("primal_steps", self.primal_steps)
        if isinstance(self.eps, (list, np.ndarray)):
            object.__setattr__(self, "eps", tuple(np.asarray(self.eps).tolist()))
        if self.slacks not in ("minibatch", "all"):
            raise InputError.about("slacks", self.slacks, "; pass 'minibatch' or 'all'")
        if self.dual_every not in ("step", "epoch"):
            raise InputError.about("dual_every", self.dual_every, "; pass 'step' or 'epoch'")

    def start(self, problem: Problem) -> Session:
        return _ConstrainedSession(problem, self, risk=True)

    def move_duals(self, duals: FloatArray, slacks: FloatArray, number: int) -> FloatArray:
        """λ (n,) after its move of this number, 1, 2, …, given the slacks (n,)."""
        step = Power(self.dual_lr, self.dual_decay)(number)
        return np.clip(duals + step * slacks, 0.0, self.dual_cap)


@dataclass(frozen=True, repr=False)
class Feasibility(PDCL):
    """Minimise R(f) subject to ℓ'_i ≤ ε_i. With R = 0 only the path of the duals is informative, because λ* = 0 at a
    strictly feasible point."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.weighted:
            raise InputError(
                "weighted=False leaves Feasibility nothing to learn from: it trains on the constraints alone; "
                "use PDCL(weighted=False), or leave weighted=True"
            )

    def start(self, problem: Problem) -> Session:
        return _ConstrainedSession(problem, self, risk=False)


@dataclass(frozen=True)
class Resilient(PDCL):
    """Minimise mean ℓ + mean h(u) subject to ℓ'_i ≤ ε_i + u_i, u ≥ 0: a slack u costs ρu²/2 up to u = κ/ρ, and κ per
    unit beyond. At the optimum λ_i = min(ρ[ℓ'_i − ε_i]₊, κ), also where a constraint cannot be met. For a steep price
    without a cap it is PDCL, for a small cap plain training.

    Attributes:
        slope: ρ; λ decays by η_d/ρ at each move.
        dual_cap: κ, the largest λ and the price of a slack beyond κ/ρ; None for no cap.
    """

    dual_lr: float = 0.5
    dual_cap: float | None = 1.0
    slope: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("slope", self.slope, positive=True)
        if not self.weighted:
            raise InputError(
                "weighted=False: the duals of a plain fit have a closed form; train by objective='erm' and score by "
                "scoring.ConstraintDual, or leave weighted=True"
            )

    def start(self, problem: Problem) -> Session:
        return _ConstrainedSession(problem, self, risk=True, slope=self.slope)

    def move_duals(self, duals: FloatArray, slacks: FloatArray, number: int) -> FloatArray:
        step = min(Power(self.dual_lr, self.dual_decay)(number), self.slope)
        return np.clip((1.0 - step / self.slope) * duals + step * slacks, 0.0, self.dual_cap)


class _ConstrainedSession(Session):
    def __init__(self, problem: Problem, objective: PDCL, *, risk: bool, slope: float = math.inf) -> None:
        super().__init__(problem)
        self._risk = risk
        self._weighted = objective.weighted
        self._regularizer = objective.regularizer
        self._same_loss = objective.secondary_loss is None
        given = objective.secondary_loss
        self._secondary = problem.loss if given is None else resolve_loss(given, problem.task)
        self._period = objective.primal_steps
        self._per_batch = objective.slacks == "minibatch"
        self._per_epoch = objective.dual_every == "epoch"
        self._schedule = Power(objective.dual_lr, objective.dual_decay)
        self.dual_cap, self.dual_slope = objective.dual_cap, slope
        self._moves = 0
        self._moving = False
        self._eps = resolve_eps(
            objective.eps,
            problem.targets,
            task=problem.task,
            classes=problem.classes,
            reference_loss=lambda: problem.reference_loss(self._secondary, objective.regularizer),
        )
        self._multipliers = Multipliers(
            len(problem.targets),
            start=objective.dual_init,
            device=problem.device,
            cap=objective.dual_cap,
            slope=slope,
        )
        self._everyone = torch.arange(len(problem.targets), device=problem.device)

    def start_epoch(self, epoch: int) -> None:
        if self._per_batch:
            self._moving = epoch % self._period == 0
            self._moves += self._moving

    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        outputs = forward(model, batch.x)
        losses = self.problem.loss(outputs, batch.targets)
        secondary = losses if self._same_loss else self._secondary(outputs, batch.targets)
        slacks = secondary - self._eps[batch.index]
        risk = self.problem.weighted(losses, batch.index).mean() if self._risk else losses.new_zeros(())
        if self._regularizer is not None:
            risk = risk + self._regularizer(model)
        if self._weighted:
            counted = self.problem.weighted(slacks, batch.index)
            value = lagrangian(risk, counted, self._multipliers.values[batch.index])
        else:
            value = risk
        if self._moving:
            self._multipliers.ascend(batch.index, slacks, self._schedule(self._moves))
        return value

    def after_step(self, step: int, outputs: Callable[[], torch.Tensor]) -> None:
        if not self._per_batch and not self._per_epoch and step % self._period == 0:
            self._move_all(outputs())

    def after_epoch(self, epoch: int, outputs: Callable[[], torch.Tensor]) -> None:
        if not self._per_batch and self._per_epoch and epoch % self._period == 0:
            self._move_all(outputs())

    def _move_all(self, outputs: torch.Tensor) -> None:
        self._moves += 1
        self._multipliers.ascend(self._everyone, self.slacks(outputs), self._schedule(self._moves))

    def duals(self) -> dict[str, torch.Tensor]:
        return {"labelled": self._multipliers.values.clone()}

    def slacks(self, outputs: torch.Tensor) -> torch.Tensor:
        return self._secondary(outputs, self.problem.targets) - self._eps
