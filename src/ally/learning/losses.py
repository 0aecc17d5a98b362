"""Per-sample losses ℓ and ℓ' by name, and the units of regression targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn import functional as F

from ally.errors import InputError
from ally.registry import Registry
from ally.types import FloatArray, Task

Loss: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""``loss(outputs (B, C or 1), targets (B,))`` gives one number per sample, (B,)."""


def cross_entropy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """−log p(y|x), in nats."""
    return F.cross_entropy(outputs, targets, reduction="none")


def squared_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(f(x) − y)²."""
    return (outputs.squeeze(1) - targets).square()


def absolute_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """|f(x) − y|."""
    return (outputs.squeeze(1) - targets).abs()


def brier(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """‖p − onehot(y)‖², a bounded alternative to cross-entropy."""
    return (outputs.softmax(1) - F.one_hot(targets, outputs.shape[1])).square().sum(1)


LOSSES: dict[Task, Registry[Loss]] = {
    "classification": Registry("classification loss", {"cross-entropy": cross_entropy, "brier": brier}),
    "regression": Registry("regression loss", {"squared": squared_error, "absolute": absolute_error}),
}
PRIMARY: dict[Task, Loss] = {"classification": cross_entropy, "regression": squared_error}


def resolve_loss(loss: Any, task: Task) -> Loss:
    """A loss from None (the task's own), a name or a function."""
    if loss is None:
        return PRIMARY[task]
    if isinstance(loss, str):
        return LOSSES[task][loss]
    if callable(loss):
        function: Loss = loss
        return function
    raise InputError(
        f"secondary_loss is a {type(loss).__name__}; pass a name ({', '.join(LOSSES[task])}) or a function (outputs, "
        "targets) -> (B,)"
    )


@dataclass(frozen=True)
class TargetScale:
    """Regression targets are trained standardised; ε is in those units."""

    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def of(cls, y: FloatArray) -> TargetScale:
        std = float(np.std(y))
        return cls(float(np.mean(y)), std if std > 1e-12 * max(1e-300, float(np.abs(y).max())) else 1.0)

    def apply(self, y: FloatArray) -> FloatArray:
        return (np.asarray(y) - self.mean) / self.std

    def invert(self, values: torch.Tensor) -> torch.Tensor:
        return values * self.std + self.mean
