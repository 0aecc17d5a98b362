"""ResNet-18 for small images: a 3×3 stem without pooling, four stages of two basic blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import nn
from torch.nn import functional as F

from ally.errors import ModelError
from ally.models.split import Split

SLIM = (16, 32, 64, 128)
FULL = (64, 128, 256, 512)


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
    """`planes` sets the width of each stage and so the embedding: `SLIM` gives the paper's 128, `FULL` gives 512."""

    def __init__(self, shape: Sequence[int], outputs: int, planes: Sequence[int] = SLIM) -> None:
        if len(shape) != 3:
            raise ModelError(f"a ResNet takes images (channels, height, width); the samples have shape {tuple(shape)}")
        layers: list[nn.Module] = [nn.Conv2d(shape[0], planes[0], 3, 1, 1, bias=False), nn.BatchNorm2d(planes[0]), nn.ReLU()]
        width = planes[0]
        for stage, size in enumerate(planes):
            layers += [BasicBlock(width, size, 1 if stage == 0 else 2), BasicBlock(size, size, 1)]
            width = size
        super().__init__(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Linear(width, outputs))
