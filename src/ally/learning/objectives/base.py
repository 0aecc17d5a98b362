"""The contract between the trainer and an objective.

The trainer draws batches and steps the optimiser. The session turns a batch into the scalar to minimise and updates its
duals. An objective that sets ``unlabelled_batch > 0`` also gets that many unlabelled samples with every batch and may
keep a dual for each of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import nn

from ally.learning.losses import Loss
from ally.learning.objectives.regularizers import Regularizer
from ally.types import Task


@dataclass(frozen=True)
class Problem:
    """The data and context of one fit."""

    targets: torch.Tensor
    """(n,) class numbers (int64) or standardised targets, on the training device."""
    task: Task
    classes: tuple[Any, ...] | None
    loss: Loss
    reference_loss: Callable[[Loss, Regularizer | None], float]
    """p_u: the mean of a loss over the labelled samples after an unconstrained fit by the same trainer, with the same
    R(f). Calling it trains."""
    n_unlabelled: int = 0
    pool_reference: Callable[[Callable[[nn.Module, torch.Tensor], float]], float] | None = None
    """Applies a function of a network and inputs (m, *shape) to an unconstrained fit by the same trainer and a seeded
    sample of L ∪ U. Calling it trains. For p_u of a loss that needs no label."""

    weights: torch.Tensor | None = None
    """(n,) weights of the labelled samples, 1 on average; None: all equal."""

    @property
    def device(self) -> torch.device:
        return self.targets.device

    def weighted(self, values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Losses or slacks (B,) of the samples at `index`, each times its weight."""
        return values if self.weights is None else values * self.weights[index].to(values.dtype)


@dataclass(frozen=True)
class Batch:
    """`index` (B,) within the labelled set, `x` (B, *shape), `targets` (B,)."""

    index: torch.Tensor
    x: torch.Tensor
    targets: torch.Tensor


@dataclass(frozen=True)
class UnlabelledBatch:
    """`index` (B,) within the unlabelled rows given to the fit, `x` (B, *shape)."""

    index: torch.Tensor
    x: torch.Tensor


class Session(ABC):
    """The state of an objective during one fit. This base has no constraints and no duals."""

    unlabelled_batch: int = 0
    min_steps: int = 0
    """The least number of optimiser steps for the whole fit. To reach it, the trainer passes over the labelled samples
    more often per epoch."""
    eps: float | None = None
    """The constraint level for the report, if it is one number for all samples."""
    dual_cap: float | None = None
    """The upper bound on λ, if there is one."""
    dual_slope: float = math.inf
    """ρ of the resilient problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def start_epoch(self, epoch: int) -> None:
        """Called before epoch 1, 2, …"""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        """The scalar to minimise on this batch."""

    def after_step(self, step: int, outputs: Callable[[], torch.Tensor]) -> None:
        """Called after optimiser step 1, 2, …; `outputs()` evaluates all labelled samples in evaluation mode."""

    def after_epoch(self, epoch: int, outputs: Callable[[], torch.Tensor]) -> None:
        """Called after epoch 1, 2, …, before the validation loss is measured; `outputs()` as for `after_step`."""

    def duals(self) -> dict[str, torch.Tensor]:
        """Current duals by group: ``"labelled"`` (n,), ``"unlabelled"`` (n_unlabelled,), NaN where unknown; may be
        empty."""
        return {}

    def modules(self) -> dict[str, nn.Module]:
        """Networks, by name, that are trained alongside the model and read by scores later. The session owns their
        optimisers."""
        return {}

    def slacks(self, outputs: torch.Tensor) -> torch.Tensor | None:
        """(n,) slacks of the constraints for the outputs of all labelled samples; None without constraints."""
        return None


@runtime_checkable
class Objective(Protocol):
    """A frozen description of a training problem. It may have a class attribute ``needs``: what it requires besides
    training on the labels, out of ``"duals"`` and ``"extra training"``."""

    def start(self, problem: Problem) -> Session: ...


def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Outputs of head ∘ backbone."""
    return cast(torch.Tensor, cast(nn.Module, model.head)(cast(nn.Module, model.backbone)(x)))
