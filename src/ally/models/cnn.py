"""A small convolutional network for images of about 28×28, fast on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from ally.errors import ModelError
from ally.models.split import Split


class CNN(Split):
    """One stage of 3×3 convolution, ReLU and 2×2 max-pool for each number in `channels`, then one hidden layer, the
    embedding."""

    def __init__(
        self,
        shape: Sequence[int],
        outputs: int,
        channels: Sequence[int] = (16, 32),
        hidden: int = 128,
        dropout: float = 0.0,
    ) -> None:
        if len(shape) != 3:
            raise ModelError(f"a CNN takes images (channels, height, width); the samples have shape {tuple(shape)}")
        depth, (height, width) = shape[0], shape[1:]
        layers: list[nn.Module] = []
        for size in channels:
            layers += [nn.Conv2d(depth, size, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2)]
            depth, height, width = size, height // 2, width // 2
        if not height * width:
            raise ModelError(
                f"images of shape {tuple(shape)} are too small for {len(channels)} halvings; use an MLP or fewer "
                "channels"
            )
        layers += [nn.Flatten(), nn.Linear(depth * height * width, hidden), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        super().__init__(nn.Sequential(*layers), nn.Linear(hidden, outputs))
