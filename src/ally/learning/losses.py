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


def resolve_loss(loss: Any, task: Task, name: str = "secondary_loss") -> Loss:
    """A loss from None (the task's own), a name or a function, one number per sample. `name` is what errors call it."""
    if loss is None:
        return PRIMARY[task]
    if isinstance(loss, str):
        return LOSSES[task][loss]
    if callable(loss):
        function: Loss = loss
        return function if function in LOSSES[task].values() else per_sample(function, name)
    raise InputError(
        f"{name} is a {type(loss).__name__}; pass a name ({', '.join(LOSSES[task])}) or a function (outputs, "
        "targets) -> (B,)"
    )


def per_sample(loss: Loss, name: str = "secondary_loss") -> Loss:
    """The same loss, which raises unless it gives one number per sample."""

    def checked(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        values: Any = loss(outputs, targets)
        if not isinstance(values, torch.Tensor) or values.shape != targets.shape:
            shape, n = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__, len(targets)
            raise InputError(
                f"{name} gave {shape} for a batch of {n}; it must give one number per sample, shape ({n},)"
            )
        return values

    return checked


@dataclass(frozen=True)
class TargetScale:
    """Regression targets are trained standardised; ε is in those units."""

    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def of(cls, labels: FloatArray) -> TargetScale:
        std = float(np.std(labels))
        return cls(float(np.mean(labels)), std if std > 1e-12 * max(1e-300, float(np.abs(labels).max())) else 1.0)

    def apply(self, labels: FloatArray) -> FloatArray:
        return (np.asarray(labels) - self.mean) / self.std

    def invert(self, values: torch.Tensor) -> torch.Tensor:
        return values * self.std + self.mean
