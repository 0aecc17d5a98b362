"""How a network is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
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


PATIENCE = 10
VALIDATION_SHARE, FEWEST_TO_SHARE = 0.2, 50
"""What a method that stops early holds out of the labels where no validation samples are given, and from how many
labels on: a fifth of fewer says too little about when to stop."""
OPTIMIZERS: Registry[Optimizer] = Registry("optimizer", {"adam": _adam, "adamw": _adamw, "sgd": _sgd})


@dataclass(frozen=True)
class Training:
    """Settings of the trainer; the same for every strategy of a comparison.

    Attributes:
        lr: η_p of Adam in the first epoch; multiplied by `lr_decay` after each.
        epochs: the largest number of epochs. Without validation samples all of them are run and the last is kept.
        batch_size: None takes a sixteenth of the labelled set, between 8 and 64, so that few labels still get many
            steps.
        patience: epochs without a better validation loss before stopping; the best epoch is kept. None is the
            strategy's, or 10 if it has none (`stops_after`).
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
        validation_share: the share of the labels to hold out for early stopping where no validation samples are given,
            from `FEWEST_TO_SHARE` labels on; 0 holds out none. None is `VALIDATION_SHARE` if the strategy stops early,
            and otherwise 0.
        graphs: a folder in which the graphs of pools are kept for later trainings; None keeps none.
    """

    lr: float = 1e-3
    lr_decay: float = 0.97
    epochs: int = 40
    batch_size: int | None = None
    patience: int | None = None
    keep: Literal["best", "last"] = "best"
    device: str = "auto"
    optimizer: str | Optimizer | None = None
    loss: str | Loss | None = None
    augment: Augment | None = None
    validation_share: float | None = None
    graphs: Path | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        """What was chosen; the last four only if they were, so that grids made before keep their names."""
        shown = {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if item.compare
            and (
                item.name not in ("optimizer", "loss", "augment", "validation_share")
                or getattr(self, item.name) != item.default
            )
        } | {"patience": self.stops_after}
        return f"Training({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def __post_init__(self) -> None:
        for name in ("lr", "lr_decay"):
            check_number(name, getattr(self, name), positive=True)
        check_count("epochs", self.epochs)
        for name in ("batch_size", "patience"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.validation_share is not None and not 0 <= self.validation_share <= 0.5:
            raise InputError.about(
                "validation_share", self.validation_share, "is not a share; pass a number from 0 to 0.5, or None"
            )
        if self.keep not in ("best", "last"):
            raise InputError.about("keep", self.keep, "; pass 'best' or 'last'")
        if isinstance(self.optimizer, str):
            OPTIMIZERS[self.optimizer]
        for name in ("optimizer", "loss", "augment"):
            value = getattr(self, name)
            if value is not None and not callable(value) and not (isinstance(value, str) and name != "augment"):
                raise InputError.about(name, value, "is not a function; see ally.learning.training.Training")

    @property
    def stops_after(self) -> int:
        """Epochs without a better validation loss before training stops."""
        return PATIENCE if self.patience is None else self.patience

    def stop_early(self, patience: int | None) -> Training:
        """The settings for a method that stops early with this patience; what was chosen here stays."""
        if patience is None:
            return self
        share = VALIDATION_SHARE if self.validation_share is None else self.validation_share
        return replace(self, patience=patience if self.patience is None else self.patience, validation_share=share)

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


FINE_TUNING = Training(lr=5e-5, epochs=10, batch_size=16, optimizer="adamw")
"""For a pretrained transformer, whose weights larger steps would undo."""
