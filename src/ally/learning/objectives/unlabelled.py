r"""Constraints that need no label, over labelled and unlabelled samples alike (the paper's future work).

.. math:: \min_\theta \frac1n \sum_{i \in L} \ell_i \quad\text{s.t.}\quad \ell'(f_\theta, x_i) \le \varepsilon,\; i \in L \cup U

The duals of the pool are then there after training, without a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from ally.checks import check_count, check_number
from ally.constrained import Multipliers, Power, lagrangian
from ally.errors import InputError
from ally.learning.objectives.base import Batch, Problem, Session, UnlabelledBatch, forward
from ally.learning.selfsupervised import Reconstruction, SelfSupervised, Smoothness, resolve_self_supervised


@dataclass(frozen=True)
class PDCLUnlabelled:
    """Minimise mean ℓ on L subject to ℓ' ≤ ε on L ∪ U.

    Attributes:
        secondary_loss: ℓ', a `SelfSupervised` loss or its name.
        eps: ε, the same for all.
        weights: ``"held"`` trains with λ₀ for every sample, and λ only records the slacks; ``"moved"`` trains with λ.
        dual_init, dual_lr, dual_decay, dual_cap: as for `PDCL`.
        price: α of a resilient constraint: slack u may be bought at α u²/2, which makes λ pay λ/α of its slack; None for none.
        warmup: share of the optimiser steps over which the weight of the constraints grows from 0 to 1.
        confidence: a constraint binds only while the likeliest class has at least this probability (classification). Where the
            network does not know yet, smoothness would spread whatever class is near, and few labels are then drowned.
        shares: also pull the predicted class shares of the pool towards those of the labels, or towards equal ones; None for neither.
            Right only if the labels were drawn at random, or the classes are about equally frequent.
        shares_weight: the weight of that pull, KL(shares ‖ mean p).
        batch: unlabelled samples per step.
        steps: optimiser steps a fit takes at least.
    """

    secondary_loss: str | SelfSupervised | Reconstruction = Smoothness()
    eps: float = 0.0
    weights: Literal["held", "moved"] = "held"
    dual_init: float = 1.0
    dual_lr: float = 0.05
    dual_decay: float = 1 / 16
    dual_cap: float | None = None
    price: float | None = None
    warmup: float = 0.3
    confidence: float = 0.8
    shares: Literal["labels", "equal"] | None = None
    shares_weight: float = 0.3
    batch: int = 256
    steps: int = 1500

    def __post_init__(self) -> None:
        for name in ("eps", "dual_init", "dual_lr", "dual_decay", "warmup", "confidence", "shares_weight"):
            check_number(name, getattr(self, name))
        for name in ("dual_cap", "price"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), positive=True)
        for name in ("batch", "steps"):
            check_count(name, getattr(self, name))
        if self.weights not in ("held", "moved"):
            raise InputError(f"weights={self.weights!r}; pass 'held' or 'moved'")
        if self.confidence >= 1:
            raise InputError(f"confidence={self.confidence} lets no constraint bind; pass a number below 1, or 0 for all")
        if self.shares not in ("labels", "equal", None):
            raise InputError(f"shares={self.shares!r}; pass 'labels', 'equal' or None")
        resolve_self_supervised(self.secondary_loss)

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
        self._secondary = resolve_self_supervised(objective.secondary_loss)
        self._beside: torch.optim.Optimizer | None = None
        self._log_shares = _log_shares(problem, objective.shares)
        self._step = 0
        self._epoch = 0

    def start_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        assert unlabelled is not None
        x = torch.cat([batch.x, unlabelled.x])
        outputs = forward(model, x)
        risk = self.problem.loss(outputs[: len(batch.x)], batch.targets).mean()
        slacks = self._loss(model, x)(model, x, outputs) - self._objective.eps
        duals = torch.cat([self._labelled.values[batch.index], self._unlabelled.values[unlabelled.index]])
        weights = torch.full_like(duals, self._objective.dual_init) if self._objective.weights == "held" else duals
        value = lagrangian(risk, slacks, self._ramp() * self._binding(outputs) * weights)
        if self._log_shares is not None:
            value = value + self._objective.shares_weight * self._unlikeness(outputs[len(batch.x) :])
        self._ascend(batch.index, unlabelled.index, slacks.detach(), duals)
        return value

    def after_step(self, step: int, outputs: Callable[[], torch.Tensor]) -> None:
        self._step = step
        if self._beside is not None:
            self._beside.step()
            self._beside.zero_grad(set_to_none=True)

    def modules(self) -> dict[str, nn.Module]:
        return {"secondary loss": self._secondary} if isinstance(self._secondary, nn.Module) else {}

    def duals(self) -> dict[str, torch.Tensor]:
        return {"labelled": self._labelled.values.clone(), "unlabelled": self._unlabelled.values.clone()}

    def _loss(self, model: nn.Module, x: torch.Tensor) -> SelfSupervised:
        """ℓ', with its own network where it has one, which is trained along."""
        if isinstance(self._secondary, Reconstruction):
            built = self._secondary.build(model, x)
            self._beside = torch.optim.Adam(built.parameters(), lr=1e-3)
            self._secondary = built
        return self._secondary

    def _binding(self, outputs: torch.Tensor) -> torch.Tensor:
        """1 for samples whose constraint binds, else 0, (B,)."""
        if self.problem.task == "regression" or not self._objective.confidence:
            return outputs.new_ones(len(outputs))
        return (outputs.detach().softmax(1).amax(1) >= self._objective.confidence).to(outputs.dtype)

    def _unlikeness(self, outputs: torch.Tensor) -> torch.Tensor:
        """KL(shares ‖ mean p)."""
        assert self._log_shares is not None
        log_mean = outputs.log_softmax(1).logsumexp(0) - math.log(len(outputs))
        return (self._log_shares.exp() * (self._log_shares - log_mean)).sum()

    def _ramp(self) -> float:
        length = self._objective.warmup * self._objective.steps
        return min(1.0, self._step / length) if length else 1.0

    def _ascend(self, labelled: torch.Tensor, unlabelled: torch.Tensor, slacks: torch.Tensor, duals: torch.Tensor) -> None:
        if self._objective.price is not None:
            slacks = slacks - duals / self._objective.price
        step = self._schedule(self._epoch)
        self._labelled.ascend(labelled, slacks[: len(labelled)], step)
        self._unlabelled.ascend(unlabelled, slacks[len(labelled) :], step)


def _log_shares(problem: Problem, shares: str | None) -> torch.Tensor | None:
    """Logarithm of the class shares to expect, (C,); one sample is added to each class, so that none is ruled out."""
    if shares is None or problem.classes is None:
        return None
    counts = torch.ones(len(problem.classes), device=problem.device)
    if shares == "labels":
        counts += torch.bincount(problem.targets, minlength=len(counts))
    return (counts / counts.sum()).log()
