"""f = head ∘ backbone: the one structure that every network must have."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from ally.errors import ModelError

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


class Split(nn.Module):
    """A network made of any two modules, ``backbone``: x → (B, d) and ``head``: (B, d) → (B, outputs)."""

    backbone: nn.Module
    head: nn.Module

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, self.head(self.backbone(x)))


def has_dropout(model: nn.Module) -> bool:
    """Whether a forward pass in training mode drops units."""
    return any(isinstance(module, DROPOUT) and module.p > 0 for module in model.modules())


def check_split(model: nn.Module, x: torch.Tensor, outputs: int) -> int:
    """The size d of the embedding. Raises unless the model is backbone + head and fits a batch `x` and `outputs`."""
    for part in ("backbone", "head"):
        if not isinstance(getattr(model, part, None), nn.Module):
            raise ModelError(
                f"{type(model).__name__} has no `{part}`; wrap your network as ally.models.Split(backbone, head), "
                "where the head is usually the last linear layer"
            )
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            embedding = cast(nn.Module, model.backbone)(x)
            prediction = cast(nn.Module, model.head)(embedding)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise ModelError(
            f"{type(model).__name__} does not take samples of shape {tuple(x.shape[1:])}: {error}"
        ) from error
    finally:
        model.train(training)
    if not isinstance(embedding, torch.Tensor) or not isinstance(prediction, torch.Tensor):
        odd = type(prediction if isinstance(embedding, torch.Tensor) else embedding).__name__
        raise ModelError(f"{type(model).__name__} gives a {odd}; backbone and head must each give one tensor")
    if embedding.ndim != 2:
        raise ModelError(
            f"the backbone gives shape {tuple(embedding.shape)} for {len(x)} samples; it must be (B, d): flatten or "
            "pool at its end"
        )
    if tuple(prediction.shape) != (len(x), outputs):
        raise ModelError(
            f"the head gives shape {tuple(prediction.shape)}; {(len(x), outputs)} is needed: set its outputs to "
            f"{outputs}"
        )
    return int(embedding.shape[1])
