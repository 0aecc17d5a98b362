r"""Losses that need no label, over labelled and unlabelled samples alike.

As constraints (the paper's future work); their duals over the pool are known after training, without a head:

.. math:: \min_\theta \frac1{|L|} \sum_{i \in L} \ell_i \quad\text{s.t.}\quad \ell'(f_\theta, x_i) \le \varepsilon,\; i
\in L \cup U

Or as a penalty of fixed weight, which has no duals. One session trains both; they differ in what weights ℓ'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
from torch import nn

from ally.checks import check_count, check_number
from ally.constrained import AUTO_FACTOR, Multipliers, PassMultipliers, Power, lagrangian
from ally.errors import InputError, TrainingDiverged
from ally.learning.objectives.base import Batch, Problem, Session, UnlabelledBatch, forward
from ally.learning.selfsupervised import Reconstruction, SelfSupervised, Smoothness, mean_loss, resolve_self_supervised

LEAST_EPS = 1e-8
"""The level for ``eps="auto"`` if that loss is 0 after the unconstrained fit: a constraint at 0 could never be met with
slack."""


@dataclass(frozen=True)
class OverPool:
    """The common part of objectives with a loss over labelled and unlabelled samples.

    Attributes:
        secondary_loss: ℓ', a `SelfSupervised` loss or its name.
        warmup: share of the optimiser steps over which the weight of ℓ' grows from 0 to its full size.
        confidence: ℓ' counts only while the likeliest class has at least this probability (classification). Where the
            network is still unsure, smoothness would spread whichever class is near and drown out the few labels.
        shares: also pull the predicted class shares of the pool towards those of the labels, or towards equal shares;
            None for neither. Valid only if the labels were drawn at random, or the classes are about equally frequent.
        shares_weight: the weight of that pull, KL(shares ‖ mean p).
        batch: unlabelled samples per step.
        steps: the least number of optimiser steps in a fit.
    """

    secondary_loss: str | SelfSupervised | Reconstruction = Smoothness()
    warmup: float = 0.3
    confidence: float = 0.8
    shares: Literal["labels", "equal"] | None = None
    shares_weight: float = 0.3
    batch: int = 256
    steps: int = 1500
    needs: ClassVar[tuple[str, ...]] = ("extra training",)

    def __post_init__(self) -> None:
        for name in ("warmup", "confidence", "shares_weight"):
            check_number(name, getattr(self, name))
        for name in ("batch", "steps"):
            check_count(name, getattr(self, name))
        if self.confidence >= 1:
            raise InputError.about(
                "confidence", self.confidence, "leaves no sample to count; pass a number below 1, or 0 for all"
            )
        if self.shares not in ("labels", "equal", None):
            raise InputError.about("shares", self.shares, "; pass 'labels', 'equal' or None")
        resolve_self_supervised(self.secondary_loss)


@dataclass(frozen=True)
class SmoothUnlabelled(OverPool):
    """Minimise mean ℓ on L plus `weight` times mean ℓ' over batches of L and of U: a penalty, which has no duals.

    Attributes:
        weight: weight of ℓ' relative to ℓ, the same for all samples and steps.
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("weight", self.weight)

    def start(self, problem: Problem) -> Session:
        return _PoolSession(problem, self, _Penalty(self.weight))


@dataclass(frozen=True)
class PDCLUnlabelled(OverPool):
    """Minimise mean ℓ on L subject to ℓ' ≤ ε on L ∪ U, by primal-dual updates: every sample is weighted by its own λ.

    λ moves once per pass over L ∪ U, and is read as it was after the last complete pass. All samples have had equally
    many updates by then, so none ranks higher for one more visit. λ is NaN (unknown) for pool samples that were not
    visited, or whose constraint was never in force.

    A graph (``model="graph"``) has its own ℓ', between neighbours, and is solved exactly: it takes `eps`, `dual_cap`
    and `price`, and refuses other values than the defaults for the rest.

    Attributes:
        eps: ε, the same for all samples. The default suits smoothness (nats, or squares of standardised targets).
            ``"auto"`` works for any loss: 1.15 p_u, with p_u the mean ℓ' of a sample of L ∪ U after an unconstrained
            fit. For smoothness that is loose.
        dual_lr: η_d; the step in the t-th pass is ``dual_lr * t**-dual_decay``.
        dual_init: λ₀.
        dual_decay: see `dual_lr`.
        dual_cap: upper bound on λ, or None.
        price: α of a resilient constraint: a relaxation u costs α u²/2, which reduces each slack by λ/α; None for hard
            constraints.
        warmup: share of the optimiser steps during which λ stays at λ₀, while its weight grows from 0 to its full size.
        confidence: a constraint is in force, and its λ moves, only while the likeliest class has at least this
            probability (classification). Where the network is still unsure, smoothness would spread whichever class is
            near.
    """

    eps: float | Literal["auto"] = 0.02
    dual_lr: float = 0.05
    dual_init: float = 0.0
    dual_decay: float = 1 / 16
    dual_cap: float | None = None
    price: float | None = None
    needs: ClassVar[tuple[str, ...]] = ("duals", "extra training")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.warmup >= 1:
            raise InputError.about(
                "warmup", self.warmup, "leaves no step in which the duals move; pass a number below 1"
            )
        if self.eps != "auto":
            if isinstance(self.eps, str):
                raise InputError.about("eps", self.eps, "; pass a number > 0, or 'auto'")
            check_number("eps", self.eps, positive=True)
        for name in ("dual_lr", "dual_init", "dual_decay"):
            check_number(name, getattr(self, name))
        for name in ("dual_cap", "price"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), positive=True)

    def start(self, problem: Problem) -> Session:
        return _PoolSession(problem, self, _Duals(problem, self))


class _Weights(Protocol):
    """The weights of ℓ' − ε, (B + M,) for a batch of B labelled and M unlabelled samples."""

    eps: float

    def __call__(self, labelled: torch.Tensor, unlabelled: torch.Tensor) -> torch.Tensor:
        """The weights of the samples at these indices, (B,) and (M,)."""
        ...

    def ascend(
        self, labelled: torch.Tensor, unlabelled: torch.Tensor, slacks: torch.Tensor, in_force: torch.Tensor
    ) -> None:
        """Updates from the slacks of the batch, (B + M,), and which constraints are in force, (B + M,) bool."""
        ...

    def read(self) -> dict[str, torch.Tensor]:
        """The duals, as `Session.duals` gives them."""
        ...


class _Penalty:
    eps = 0.0

    def __init__(self, weight: float) -> None:
        self._weight = weight

    def __call__(self, labelled: torch.Tensor, unlabelled: torch.Tensor) -> torch.Tensor:
        return torch.full((len(labelled) + len(unlabelled),), self._weight, device=labelled.device)

    def ascend(
        self, labelled: torch.Tensor, unlabelled: torch.Tensor, slacks: torch.Tensor, in_force: torch.Tensor
    ) -> None:
        """A penalty does not change."""

    def read(self) -> dict[str, torch.Tensor]:
        return {}


class _Duals:
    """One λ for every sample of L ∪ U, the labelled ones first."""

    def __init__(self, problem: Problem, objective: PDCLUnlabelled) -> None:
        self.eps = _level(problem, objective)
        self._price = objective.price
        self._n = len(problem.targets)
        multipliers = Multipliers(
            self._n + problem.n_unlabelled, start=objective.dual_init, device=problem.device, cap=objective.dual_cap
        )
        self._multipliers = PassMultipliers(multipliers, Power(objective.dual_lr, objective.dual_decay))

    def __call__(self, labelled: torch.Tensor, unlabelled: torch.Tensor) -> torch.Tensor:
        """λ, times a correction that makes the mean over a batch an estimate of the mean over L ∪ U: a batch holds much
        of L and little of U."""
        values = self._multipliers.values
        drawn = (len(labelled) + len(unlabelled)) / len(values)
        return torch.cat(
            [
                values[labelled] * (drawn * self._n / len(labelled)),
                values[self._n + unlabelled] * (drawn * (len(values) - self._n) / len(unlabelled)),
            ]
        )

    def ascend(
        self, labelled: torch.Tensor, unlabelled: torch.Tensor, slacks: torch.Tensor, in_force: torch.Tensor
    ) -> None:
        index = torch.cat([labelled, self._n + unlabelled])
        if self._price is not None:
            slacks = slacks - self._multipliers.values[index] / self._price
        self._multipliers.ascend(index, slacks, in_force)

    def read(self) -> dict[str, torch.Tensor]:
        duals = self._multipliers.read()
        # A labelled sample is visited in every epoch, so NaN means that its constraint was never in force.
        return {"labelled": duals[: self._n].nan_to_num(0.0), "unlabelled": duals[self._n :]}


class _PoolSession(Session):
    def __init__(self, problem: Problem, objective: OverPool, weights: _Weights) -> None:
        super().__init__(problem)
        self.unlabelled_batch = objective.batch
        self.min_steps = objective.steps
        self.eps = weights.eps or None
        self._objective = objective
        self._weights = weights
        self._secondary = resolve_self_supervised(objective.secondary_loss)
        self._beside: torch.optim.Optimizer | None = None
        self._log_shares = _log_shares(problem, objective.shares)
        self._step = 0

    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        assert unlabelled is not None
        x = torch.cat([batch.x, unlabelled.x])
        outputs = forward(model, x)
        risk = self.problem.loss(outputs[: len(batch.x)], batch.targets).mean()
        slacks = self._loss(model, x)(model, x, outputs) - self._weights.eps
        in_force = self._in_force(outputs)
        weights = self._weights(batch.index, unlabelled.index)
        ramp = self._ramp()
        value = lagrangian(risk, slacks, ramp * in_force.to(outputs.dtype) * weights)
        if self._log_shares is not None:
            value = value + self._objective.shares_weight * self._unlikeness(outputs[len(batch.x) :])
        if ramp == 1.0:
            self._weights.ascend(batch.index, unlabelled.index, slacks.detach(), in_force)
        return value

    def after_step(self, step: int, outputs: Callable[[], torch.Tensor]) -> None:
        self._step = step
        if self._beside is not None:
            self._beside.step()
            self._beside.zero_grad(set_to_none=True)

    def modules(self) -> dict[str, nn.Module]:
        return {"secondary loss": self._secondary} if isinstance(self._secondary, nn.Module) else {}

    def duals(self) -> dict[str, torch.Tensor]:
        return self._weights.read()

    def _loss(self, model: nn.Module, x: torch.Tensor) -> SelfSupervised:
        """ℓ', with its own network if it has one, which is trained alongside."""
        if isinstance(self._secondary, Reconstruction):
            built = self._secondary.build(model, x)
            self._beside = torch.optim.Adam(built.parameters(), lr=1e-3)
            self._secondary = built
        return self._secondary

    def _in_force(self, outputs: torch.Tensor) -> torch.Tensor:
        """Whether ℓ' of a sample counts now, (B + M,) bool."""
        if self.problem.task == "regression" or not self._objective.confidence:
            return torch.ones(len(outputs), dtype=torch.bool, device=outputs.device)
        return outputs.detach().softmax(1).amax(1) >= self._objective.confidence

    def _unlikeness(self, outputs: torch.Tensor) -> torch.Tensor:
        """KL(shares ‖ mean p)."""
        assert self._log_shares is not None
        log_mean = outputs.log_softmax(1).logsumexp(0) - math.log(len(outputs))
        return (self._log_shares.exp() * (self._log_shares - log_mean)).sum()

    def _ramp(self) -> float:
        length = self._objective.warmup * self._objective.steps
        return min(1.0, self._step / length) if length else 1.0


def _level(problem: Problem, objective: PDCLUnlabelled) -> float:
    """ε as a number."""
    if objective.eps != "auto":
        return objective.eps
    assert problem.pool_reference is not None
    secondary = resolve_self_supervised(objective.secondary_loss)
    mean = problem.pool_reference(lambda model, x: mean_loss(secondary, model, x, objective.batch))
    if not math.isfinite(mean):
        raise TrainingDiverged(
            f"eps='auto': the mean of {secondary} is {mean} after an unconstrained fit; pass eps as a number"
        )
    return max(LEAST_EPS, AUTO_FACTOR * mean)


def _log_shares(problem: Problem, shares: str | None) -> torch.Tensor | None:
    """Log of the expected class shares, (C,); one sample is added to each class, so that none is ruled out."""
    if shares is None or problem.classes is None:
        return None
    counts = torch.ones(len(problem.classes), device=problem.device)
    if shares == "labels":
        counts += torch.bincount(problem.targets, minlength=len(counts))
    return (counts / counts.sum()).log()
