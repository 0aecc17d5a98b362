r"""Constraints that need no label, over labelled and unlabelled samples alike (the paper's future work).

.. math:: \min_\theta \frac1n \sum_{i \in L} \ell_i \quad\text{s.t.}\quad \ell'(f_\theta, x_i) \le \varepsilon,\; i \in L \cup U

The duals of the pool are then there after training, without a head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from ally.checks import check_count, check_number
from ally.constrained import Multipliers, Power, lagrangian
from ally.errors import InputError
from ally.learning.objectives.base import Batch, Problem, Session, UnlabelledBatch, forward
from ally.learning.selfsupervised import SelfSupervised, Smoothness


@dataclass(frozen=True)
class PDCLUnlabelled:
    """Minimise mean ℓ on L subject to ℓ' ≤ ε on L ∪ U.

    Attributes:
        secondary_loss: ℓ', a `SelfSupervised` loss.
        eps: ε, the same for all.
        weights: ``"held"`` trains with λ₀ for every sample, and λ only records the slacks; ``"moved"`` trains with λ.
        dual_init, dual_lr, dual_decay, dual_cap: as for `PDCL`.
        price: α of a resilient constraint: slack u may be bought at α u²/2, which makes λ pay λ/α of its slack; None for none.
        warmup: share of the optimiser steps over which the weight of the constraints grows from 0 to 1; few labels need it.
        batch: unlabelled samples per step.
        steps: optimiser steps a fit takes at least.
    """

    secondary_loss: SelfSupervised = Smoothness()
    eps: float = 0.0
    weights: Literal["held", "moved"] = "held"
    dual_init: float = 1.0
    dual_lr: float = 0.05
    dual_decay: float = 1 / 16
    dual_cap: float | None = None
    price: float | None = None
    warmup: float = 0.3
    batch: int = 256
    steps: int = 1500

    def __post_init__(self) -> None:
        for name in ("eps", "dual_init", "dual_lr", "dual_decay", "warmup"):
            check_number(name, getattr(self, name))
        for name in ("dual_cap", "price"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), positive=True)
        for name in ("batch", "steps"):
            check_count(name, getattr(self, name))
        if self.weights not in ("held", "moved"):
            raise InputError(f"weights={self.weights!r}; pass 'held' or 'moved'")

    def start(self, problem: Problem) -> Session:
        return _UnlabelledSession(problem, self)


class _UnlabelledSession(Session):
    def __init__(self, problem: Problem, objective: PDCLUnlabelled) -> None:
        super().__init__(problem)
        self.unlabelled_batch = objective.batch
        self.min_steps = objective.steps
        self._objective = objective
        self._schedule = Power(objective.dual_lr, objective.dual_decay)
        self._labelled, self._unlabelled = (
            Multipliers(n, start=objective.dual_init, device=problem.device, cap=objective.dual_cap)
            for n in (len(problem.targets), problem.n_unlabelled)
        )
        self._step = 0
        self._epoch = 0

    def start_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        assert unlabelled is not None
        x = torch.cat([batch.x, unlabelled.x])
        outputs = forward(model, x)
        risk = self.problem.loss(outputs[: len(batch.x)], batch.targets).mean()
        slacks = self._objective.secondary_loss(model, x, outputs) - self._objective.eps
        duals = torch.cat([self._labelled.values[batch.index], self._unlabelled.values[unlabelled.index]])
        weights = torch.full_like(duals, self._objective.dual_init) if self._objective.weights == "held" else duals
        value = lagrangian(risk, slacks, self._ramp() * weights)
        self._ascend(batch.index, unlabelled.index, slacks.detach(), duals)
        return value

    def after_step(self, step: int, outputs: Callable[[], torch.Tensor]) -> None:
        self._step = step

    def duals(self) -> dict[str, torch.Tensor]:
        return {"labelled": self._labelled.values.clone(), "unlabelled": self._unlabelled.values.clone()}

    def _ramp(self) -> float:
        length = self._objective.warmup * self._objective.steps
        return min(1.0, self._step / length) if length else 1.0

    def _ascend(self, labelled: torch.Tensor, unlabelled: torch.Tensor, slacks: torch.Tensor, duals: torch.Tensor) -> None:
        if self._objective.price is not None:
            slacks = slacks - duals / self._objective.price
        step = self._schedule(self._epoch)
        self._labelled.ascend(labelled, slacks[: len(labelled)], step)
        self._unlabelled.ascend(unlabelled, slacks[len(labelled) :], step)
