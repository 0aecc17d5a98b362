"""Per-sample losses ℓ and ℓ' by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch.nn import functional as F

from ally.errors import InputError
from ally.registry import Registry
from ally.types import Task

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
