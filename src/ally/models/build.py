"""Turns the user's ``model=`` into a function that builds a new network."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from torch import nn

from ally.catalogue_names import built_by
from ally.errors import ModelError
from ally.models.cnn import CNN
from ally.models.mlp import MLP
from ally.models.resnet import FULL, SLIM, ResNet18
from ally.registry import Registry

ModelBuilder: TypeAlias = Callable[[tuple[int, ...], int], nn.Module]
"""``build(sample_shape, outputs)`` returns a new network. Called once per fit, so nothing leaks between rounds."""

MODELS: Registry[ModelBuilder] = Registry(
    "model",
    {
        "mlp": MLP,
        "linear": partial(MLP, hidden=()),
        "linear-network": partial(MLP, hidden=()),
        "resnet18-slim": partial(ResNet18, planes=SLIM),
        "resnet18": partial(ResNet18, planes=FULL),
        "resnet18-stl": partial(ResNet18, planes=FULL, stem="large"),
        "cnn": CNN,
    },
)


@dataclass(frozen=True)
class ModuleCopy:
    """Gives a copy of the user's module for every fit."""

    module: nn.Module

    def __call__(self, shape: tuple[int, ...], outputs: int) -> nn.Module:
        return copy.deepcopy(self.module)

    def __repr__(self) -> str:
        return f"ModuleCopy({type(self.module).__name__})"


def model_name(model: Any, shape: tuple[int, ...]) -> str | None:
    """The name in `MODELS` of the user's model; None for a network of their own."""
    if model is None:
        return "resnet18-slim" if len(shape) == 3 and min(shape[1:]) >= 8 else "mlp"
    return model if isinstance(model, str) else None


def own_network(path: str) -> ModelBuilder:
    """The builder at the import path ``module:builder``."""
    return as_builder(built_by(path))


def as_builder(made: Any) -> ModelBuilder:
    """A builder from a module, which is copied for every fit, or from a builder."""
    if isinstance(made, nn.Module):
        return ModuleCopy(made)
    if callable(made):
        builder: ModelBuilder = made
        return builder
    raise ModelError(
        f"model is a {type(made).__name__}; pass a name ({', '.join(MODELS)}), a torch module or a function (shape, "
        "outputs) -> module"
    )


def model_builder(model: Any, shape: tuple[int, ...]) -> ModelBuilder:
    """A builder from None (MLP for vectors, slim ResNet-18 for images), a name, a module or a builder.

    A module is copied for every fit, so each round starts from the module's original weights.
    """
    name = model_name(model, shape)
    return as_builder(model) if name is None else MODELS[name]
