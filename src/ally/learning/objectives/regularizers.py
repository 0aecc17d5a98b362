"""R(f): functionals of the model that need no data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import nn

Regularizer: TypeAlias = Callable[[nn.Module], torch.Tensor]


@dataclass(frozen=True)
class HalfSquaredNorm:
    """``weight * ½‖w‖²`` over weight matrices; biases are free."""

    weight: float = 1.0

    def __call__(self, model: nn.Module) -> torch.Tensor:
        squares = [p.square().sum() for p in model.parameters() if p.ndim > 1]
        return self.weight * 0.5 * torch.stack(squares).sum()
