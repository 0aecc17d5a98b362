"""How a network is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ally.checks import check_count, check_number
from ally.errors import InputError


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
    """

    lr: float = 1e-3
    lr_decay: float = 0.97
    epochs: int = 40
    batch_size: int | None = None
    patience: int = 10
    keep: Literal["best", "last"] = "best"
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("lr", "lr_decay"):
            check_number(name, getattr(self, name), positive=True)
        for name in ("epochs", "patience"):
            check_count(name, getattr(self, name))
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        if self.keep not in ("best", "last"):
            raise InputError.about("keep", self.keep, "; pass 'best' or 'last'")

    def batch_size_for(self, n: int) -> int:
        return self.batch_size if self.batch_size is not None else min(64, max(8, n // 16))
