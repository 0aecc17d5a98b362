"""Secondary losses ℓ'(f, x) that need no label, one number per sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from torch import nn
from torch.nn import functional as F

from ally.learning.objectives.base import forward


class SelfSupervised(Protocol):
    """A frozen dataclass: ``loss(model, x (B, *shape), outputs (B, C or 1))`` gives (B,) with gradient to the model."""

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor: ...


def divergence(clean: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """How far the prediction moved, (B,): KL(p ‖ q) of class distributions, or the squared difference of targets.

    `clean` is a constant: only the moved prediction is pulled.
    """
    clean = clean.detach()
    if clean.shape[1] == 1:
        return (clean - other).square().squeeze(1)
    log_p, log_q = clean.log_softmax(1), other.log_softmax(1)
    return (log_p.exp() * (log_p - log_q)).sum(1)


@dataclass(frozen=True)
class Smoothness:
    r"""Local distributional smoothness (Miyato et al., 2018): KL(p(·|x) ‖ p(·|x + r)) for the worst r of length `radius`.

    r is found by `iterations` of the power method on the curvature of the divergence, from a random direction. Without a radius it
    is 0.14 √(inputs): about a seventh of a standard deviation per standardised feature.
    """

    radius: float | None = None
    iterations: int = 1
    probe: float = 1e-2

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        radius = self.radius if self.radius is not None else 0.14 * math.sqrt(x[0].numel())
        return divergence(outputs, forward(model, x + radius * self.direction(model, x, outputs)))

    def direction(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        """Unit vectors (B, *shape) along which the prediction changes most."""
        unit = _normalised(torch.randn_like(x))
        frozen = [p for p in model.parameters() if p.requires_grad]
        for p in frozen:
            p.requires_grad_(False)
        try:
            for _ in range(self.iterations):
                step = (self.probe * unit).requires_grad_()
                with torch.enable_grad():
                    moved = divergence(outputs, forward(model, x + step)).sum()
                    (gradient,) = torch.autograd.grad(moved, step)
                unit = _normalised(gradient)
        finally:
            for p in frozen:
                p.requires_grad_(True)
        return unit


@dataclass(frozen=True)
class NoiseConsistency:
    """The same divergence under Gaussian noise of standard deviation `scale` per feature."""

    scale: float = 0.3

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        return divergence(outputs, forward(model, x + self.scale * torch.randn_like(x)))


@dataclass(frozen=True)
class PredictiveEntropy:
    """H(p(·|x)): confident predictions everywhere (classification)."""

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        log_p = outputs.log_softmax(1)
        return -(log_p.exp() * log_p).sum(1)


class Reconstruction:
    """‖x − decoder(h)‖² per feature, with a linear decoder on the embedding whose parameters are the session's to train."""

    def __init__(self, decoder: nn.Module) -> None:
        self.decoder = decoder

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(1)
        restored = self.decoder(cast(nn.Module, model.backbone)(x))
        return F.mse_loss(restored, flat, reduction="none").mean(1)


def _normalised(direction: torch.Tensor) -> torch.Tensor:
    """Unit length per sample; a zero direction stays zero."""
    flat = direction.flatten(1)
    # Two steps, because a tiny gradient underflows when squared.
    flat = flat / flat.abs().amax(1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    length = torch.linalg.vector_norm(flat, dim=1, keepdim=True).clamp(min=1e-12)
    return cast(torch.Tensor, (flat / length).view_as(direction))
