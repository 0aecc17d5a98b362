"""Multi-layer perceptron; with no hidden layer it is a linear model whose embedding is the input."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from ally.models.split import Split


class MLP(Split):
    """Linear–ReLU(–dropout) layers of the widths in `hidden`, then a linear head."""

    def __init__(
        self, shape: Sequence[int], outputs: int, hidden: Sequence[int] = (256, 256), dropout: float = 0.0
    ) -> None:
        layers: list[nn.Module] = [nn.Flatten()]
        width = math.prod(shape)
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU()]
            if dropout:
                layers.append(nn.Dropout(dropout))
            width = size
        super().__init__(nn.Sequential(*layers), nn.Linear(width, outputs))
