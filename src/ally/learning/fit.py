"""A trained network and the report of its training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from ally.constrained import Slacks
from ally.sources import blocks
from ally.types import AnyArray, FloatArray, IntArray, Task


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


@dataclass(frozen=True)
class FitReport:
    """What happened during a fit. The dual fields are None for an objective without constraints."""

    samples: int
    epochs: int
    kept_epoch: int
    """The epoch of the network."""
    train_loss: float
    validation_loss: float | None
    positive_duals: float | None
    """Share of samples with λ > 0 among those whose λ is known: the labelled ones, and the pool's where constraints
    range over it."""
    slacks: Slacks | None
    seconds: float = 0.0
    dual_epoch: int = 0
    """The epoch of the duals: that of the network, unless `Training.keep` says otherwise."""
    eps: float | None = None
    """ε of constraints over the pool."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A network in evaluation mode, with the duals of the epoch it was kept from."""

    model: nn.Module = field(repr=False)
    task: Task
    classes: tuple[Any, ...] | None
    scale: TargetScale
    report: FitReport
    duals: dict[str, torch.Tensor] = field(repr=False)
    modules: dict[str, nn.Module] = field(default_factory=dict, repr=False)
    """Other networks the objective trained beside the model, in evaluation mode, by name."""
    unlabelled_rows: IntArray | None = field(default=None, repr=False)
    """Absolute rows of ``duals["unlabelled"]``, which is NaN where a dual is not known."""

    def inputs(self, x: AnyArray) -> torch.Tensor:
        """Samples as the network takes them, on its device."""
        return to_tensor(x, next(self.model.parameters()).device, input_dtype(self.model))

    def embed(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings (B, d) and outputs (B, C or 1) of one block of inputs, on the CPU."""
        with torch.inference_mode():
            embedding = cast(nn.Module, self.model.backbone)(x)
            outputs = cast(nn.Module, self.model.head)(embedding)
        return embedding.float().cpu(), outputs.float().cpu()


def input_dtype(model: nn.Module) -> torch.dtype:
    """The dtype of the first floating-point parameter: what the network expects as input."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


def to_tensor(x: AnyArray, device: torch.device | str, dtype: torch.dtype) -> torch.Tensor:
    """Samples for the network: floats in its dtype, integers (tokens) as they are."""
    tensor = torch.from_numpy(np.ascontiguousarray(x))
    return tensor.to(device, dtype if tensor.is_floating_point() else None)


def evaluate(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Outputs of all rows of `x` in evaluation mode, block by block."""
    training = model.training
    model.eval()
    with torch.no_grad():
        outputs = torch.cat(
            [cast(nn.Module, model.head)(cast(nn.Module, model.backbone)(x[block])) for block in blocks(len(x))]
        )
    model.train(training)
    return outputs
