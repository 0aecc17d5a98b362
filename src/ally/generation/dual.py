"""The predicted dual as a function of the sample."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from ally.errors import InputError
from ally.estimators import dual_parts
from ally.learning.dual_head import FittedHead
from ally.learning.fitted_network import FittedNetwork, input_dtype
from ally.learning.snapshot import View


class DualOf(nn.Module):
    """x (n, *shape) in its own units ↦ predicted log(1 + λ), (n,) float64, unclamped: what the head ranks by.

    The network θ and the head ω are copies and frozen; a gradient reaches x alone. ``double()`` makes all of it
    float64.
    """

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, fit: FittedNetwork, head: FittedHead) -> None:
        super().__init__()
        if head.constant:
            raise InputError(
                f"all {fit.report.samples} labelled samples have the same λ, so every sample has the same "
                "predicted dual and none can be raised; lower eps so that some constraints bind"
            )
        self.fit = replace(fit, model=copy.deepcopy(fit.model).eval().requires_grad_(False))
        self.theta = self.fit.model
        self.head = replace(head, predict=copy.deepcopy(head.predict))
        if isinstance(self.head.predict, nn.Module):
            self.omega = self.head.predict
        scaler = fit.scaler
        self.standardized = scaler is not None
        self.register_buffer("mean", torch.as_tensor(0.0 if scaler is None else scaler.mean, dtype=torch.float64))
        self.register_buffer("scale", torch.as_tensor(1.0 if scaler is None else scaler.scale, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.view(x))

    def view(self, x: torch.Tensor) -> View:
        """The samples as the network sees them, with gradients to `x`."""
        inputs = (x.double() - self.mean) / self.scale
        inputs = inputs.to(next(self.theta.parameters()).device, input_dtype(self.theta))
        embeddings = cast(nn.Module, self.theta.backbone)(inputs)
        outputs = cast(nn.Module, self.theta.head)(embeddings).double().cpu()
        rows = np.arange(len(x))
        if self.fit.task == "classification":
            return View(rows, embeddings.cpu(), outputs.softmax(1), outputs.argmax(1))
        return View(rows, embeddings.cpu(), None, self.fit.scale.invert(outputs.squeeze(1)))


def as_dual(model: Any) -> DualOf:
    """The predicted dual of a fitted estimator, of a pair (FittedNetwork, FittedHead), or as given."""
    if isinstance(model, DualOf):
        return model
    if isinstance(model, tuple) and len(model) == 2:
        fit, head = model
        if isinstance(fit, FittedNetwork) and isinstance(head, FittedHead):
            return DualOf(fit, head)
    return DualOf(*dual_parts(model))
