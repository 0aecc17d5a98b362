"""How a network is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from ally.checks import check_count, check_number
from ally.errors import InputError
from ally.learning.losses import Loss
from ally.registry import Registry

Optimizer: TypeAlias = Callable[[Iterable[nn.Parameter], float], torch.optim.Optimizer]
Augment: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def _adam(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=lr, fused=True)


def _adamw(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=lr, weight_decay=1e-2, fused=True)


def _sgd(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9)


OPTIMIZERS: Registry[Optimizer] = Registry("optimizer", {"adam": _adam, "adamw": _adamw, "sgd": _sgd})


@dataclass(frozen=True)
class Training:
    """Settings of the trainer; the same for every strategy of a comparison.

    Attributes:
        lr: η_p of Adam in the first epoch; multiplied by `lr_decay` after each.
        epochs: the largest number of epochs. Without validation samples all of them are run and the last is kept.
        batch_size: None takes a sixteenth of the labelled set, between 8 and 64, so that few labels still get many
            steps.
        patience: epochs without a better validation loss before stopping; the best epoch is kept.
        keep: with validation samples, ``"best"`` stops early and keeps the network and the duals of the best epoch.
            ``"last"`` runs all epochs, keeps the network of the last and the duals of the epoch that early stopping
            would have kept.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, …
        optimizer: a name of `OPTIMIZERS`, or a function ``(parameters, lr) -> torch.optim.Optimizer``; None is Adam.
            `lr` and `lr_decay` hold for any.
        loss: ℓ by a name of `ally.learning.losses.LOSSES`, or a function ``(outputs, targets) -> (B,)``; None is the
            cross-entropy, or the squared error of standardised targets. Levels ε are in its units.
        augment: a function of the labelled samples of a batch, (B, *shape) → (B, *shape), as the network sees them;
            applied in training only. What it draws from torch's generators is seeded.
        processes: how many share a training, each with its own samples and their duals (`ally.learning.parallel`). They
            are started for each fit, unless this process is one of a `torch.distributed` group of that many.
    """

    lr: float = 1e-3
    lr_decay: float = 0.97
    epochs: int = 40
    batch_size: int | None = None
    patience: int = 10
    keep: Literal["best", "last"] = "best"
    device: str = "auto"
    optimizer: str | Optimizer | None = None
    loss: str | Loss | None = None
    augment: Augment | None = None
    processes: int = 1

    def __repr__(self) -> str:
        """What was chosen; the last four only if they were, so that grids made before keep their names."""
        shown = [
            f"{item.name}={getattr(self, item.name)!r}"
            for item in fields(self)
            if item.name not in ("optimizer", "loss", "augment", "processes")
            or getattr(self, item.name) != item.default
        ]
        return f"Training({', '.join(shown)})"

    def __post_init__(self) -> None:
        for name in ("lr", "lr_decay"):
            check_number(name, getattr(self, name), positive=True)
        for name in ("epochs", "patience", "processes"):
            check_count(name, getattr(self, name))
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        if self.keep not in ("best", "last"):
            raise InputError.about("keep", self.keep, "; pass 'best' or 'last'")
        if isinstance(self.optimizer, str):
            OPTIMIZERS[self.optimizer]
        for name in ("optimizer", "loss", "augment"):
            value = getattr(self, name)
            if value is not None and not callable(value) and not (isinstance(value, str) and name != "augment"):
                raise InputError.about(name, value, "is not a function; see ally.learning.training.Training")

    def build_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        wanted = "adam" if self.optimizer is None else self.optimizer
        built: Any = (OPTIMIZERS[wanted] if isinstance(wanted, str) else wanted)(parameters, self.lr)
        if not isinstance(built, torch.optim.Optimizer):
            raise InputError(f"optimizer gave a {type(built).__name__}; it must give a torch.optim.Optimizer")
        return built

    def augmented(self, x: torch.Tensor) -> torch.Tensor:
        """A batch (B, *shape) to train on."""
        if self.augment is None:
            return x
        changed: Any = self.augment(x)
        if not isinstance(changed, torch.Tensor) or changed.shape != x.shape:
            found = tuple(changed.shape) if isinstance(changed, torch.Tensor) else type(changed).__name__
            raise InputError(f"augment gave {found} for a batch of shape {tuple(x.shape)}; it must keep the shape")
        return changed.to(x.dtype)

    def batch_size_for(self, n: int) -> int:
        return self.batch_size if self.batch_size is not None else min(64, max(8, n // 16))
