"""ResNet-18 for small images: a stem that fits their size, then four stages of two basic blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast

import torch
from torch import nn
from torch.nn import functional as F

from ally.errors import ModelError
from ally.models.split import Split

SLIM = (16, 32, 64, 128)
FULL = (64, 128, 256, 512)

Stem: TypeAlias = Literal["auto", "small", "medium", "large"]
LARGEST_SMALL, LARGEST_MEDIUM = 48, 80
"""The longest sides for which ``auto`` uses the small and the medium stem."""


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut (a 1×1 convolution where the shape changes)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(cast(torch.Tensor, self.norm2(self.conv2(y)) + self.shortcut(x)))


class ResNet18(Split):
    """`planes` sets the width of each stage and so the size of the embedding: `SLIM` gives the paper's 128, `FULL` 512.

    By default the longer side of the images decides the `stem`, so that the last stage sees about 4×4 positions:
    ``small`` (up to 48) is a 3×3 convolution, ``medium`` (up to 80) the same with stride 2, ``large`` a 7×7 convolution
    with stride 2 and a max-pool.
    """

    def __init__(self, shape: Sequence[int], outputs: int, planes: Sequence[int] = SLIM, stem: Stem = "auto") -> None:
        if len(shape) != 3:
            raise ModelError(f"a ResNet takes images (channels, height, width); the samples have shape {tuple(shape)}")
        layers = _stem(stem, shape, planes[0])
        width = planes[0]
        for stage, size in enumerate(planes):
            layers += [BasicBlock(width, size, 1 if stage == 0 else 2), BasicBlock(size, size, 1)]
            width = size
        super().__init__(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Linear(width, outputs))


def _stem(stem: Stem, shape: Sequence[int], width: int) -> list[nn.Module]:
    """The layers before the first stage."""
    if stem == "auto":
        side = max(shape[1:])
        stem = "small" if side <= LARGEST_SMALL else "medium" if side <= LARGEST_MEDIUM else "large"
    if stem not in ("small", "medium", "large"):
        raise ModelError.about("stem", stem, "is unknown; choose 'auto', 'small', 'medium' or 'large'")
    kernel, stride = {"small": (3, 1), "medium": (3, 2), "large": (7, 2)}[stem]
    layers: list[nn.Module] = [
        nn.Conv2d(shape[0], width, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
    ]
    return [*layers, nn.MaxPool2d(3, 2, 1)] if stem == "large" else layers
