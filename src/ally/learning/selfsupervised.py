"""Secondary losses ℓ'(f, x) that need no label, one number per sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import nn
from torch.nn import functional as F

from ally.checks import check_count, check_number
from ally.errors import InputError
from ally.learning.objectives.base import forward
from ally.registry import Registry


class SelfSupervised(Protocol):
    """A frozen dataclass: ``loss(model, x (B, *shape), outputs (B, C or 1))`` gives (B,) with gradient to the model."""

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor: ...


def divergence(clean: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """How far the prediction moved, (B,): KL(p ‖ q) of class distributions, or the squared difference of targets.

    Class distributions are pulled towards the `clean` one, which is held constant. Targets are pulled together: were
    one held constant, nothing would keep both from drifting off where there are no labels.
    """
    if clean.shape[1] == 1:
        return (clean - other).square().squeeze(1)
    clean = clean.detach()
    log_p, log_q = clean.log_softmax(1), other.log_softmax(1)
    return (log_p.exp() * (log_p - log_q)).sum(1)


@dataclass(frozen=True)
class Smoothness:
    r"""Local distributional smoothness (Miyato et al., 2018): KL(p(·|x) ‖ p(·|x + r)) for the worst r of length
    `radius`.

    r is found by `iterations` of the power method on the curvature of the divergence, from a random direction. Without
    a radius it is 0.14 √(inputs) for classes, about a seventh of a standard deviation per standardised feature, and
    0.05 √(inputs) for targets.
    """

    radius: float | None = None
    iterations: int = 1
    probe: float = 1e-2

    def __post_init__(self) -> None:
        if self.radius is not None:
            check_number("radius", self.radius, positive=True)
        check_count("iterations", self.iterations)
        check_number("probe", self.probe, positive=True)

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        radius = (
            self.radius
            if self.radius is not None
            else (0.05 if outputs.shape[1] == 1 else 0.14) * math.sqrt(x[0].numel())
        )
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


class Change(Protocol):
    """A frozen dataclass: a change of inputs (B, *shape) that should leave their prediction as it is."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor: ...


@dataclass(frozen=True)
class Noise:
    """Gaussian noise of standard deviation `scale` on every feature."""

    scale: float = 0.3

    def __post_init__(self) -> None:
        check_number("scale", self.scale)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scale * torch.randn_like(x)


@dataclass(frozen=True)
class Mask:
    """Every feature set to 0, its mean once standardised, with probability `share`."""

    share: float = 0.2

    def __post_init__(self) -> None:
        check_number("share", self.share)
        if self.share >= 1:
            raise InputError.about("share", self.share, "masks everything; pass a number below 1")

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * (torch.rand_like(x) >= self.share)


@dataclass(frozen=True)
class Shift:
    """Images (channels, height, width) moved by up to `pixels` in each direction, borders repeated; with `flip`, half
    are mirrored."""

    pixels: int = 2
    flip: bool = False

    def __post_init__(self) -> None:
        check_count("pixels", self.pixels)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if x.ndim != 4:
            raise InputError(
                f"Shift moves images, and the samples have shape {tuple(x.shape[1:])}; use Noise() or Mask() for them"
            )
        count, _, height, width = x.shape
        padded = F.pad(x, [self.pixels] * 4, mode="replicate")
        down, right = (torch.randint(2 * self.pixels + 1, (count, 1), device=x.device) for _ in range(2))
        rows, columns = down + torch.arange(height, device=x.device), right + torch.arange(width, device=x.device)
        if self.flip:
            columns = torch.where(torch.rand(count, 1, device=x.device) < 0.5, columns.flip(1), columns)
        which = torch.arange(count, device=x.device)[:, None, None]
        # Two indices around a slice put the channels last.
        return padded[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Consistency:
    """The same divergence under a change that should not matter."""

    change: Change = Noise()

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        return divergence(outputs, forward(model, self.change(x)))


@dataclass(frozen=True)
class PredictiveEntropy:
    """H(p(·|x)): confident predictions everywhere (classification)."""

    def __call__(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        if outputs.shape[1] == 1:
            raise InputError(
                "predictive entropy is defined for classification; use Smoothness() or Consistency() for regression"
            )
        log_p = outputs.log_softmax(1)
        return -(log_p.exp() * log_p).sum(1)


@dataclass(frozen=True)
class Reconstruction:
    """‖x − decoder(h)‖² per feature. The decoder is trained alongside the network: one layer of `hidden` units on the
    embedding, 0 for none."""

    hidden: int = 256

    def __post_init__(self) -> None:
        check_count("hidden", self.hidden, least=0)

    def build(self, model: nn.Module, x: torch.Tensor) -> ReconstructionLoss:
        """The loss with its decoder, for inputs like `x` (B, *shape)."""
        with torch.no_grad():
            size = cast(nn.Module, model.backbone)(x[:2]).shape[1]
        layers: list[nn.Module] = [nn.Linear(size, self.hidden), nn.ReLU()] if self.hidden else []
        decoder = nn.Sequential(*layers, nn.Linear(self.hidden or size, x[0].numel()))
        return ReconstructionLoss(decoder).to(x.device, x.dtype)


class ReconstructionLoss(nn.Module):
    """See `Reconstruction`."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def settle(self, model: nn.Module, x: torch.Tensor, steps: int = 200) -> ReconstructionLoss:
        """Trains the decoder alone, on `x` (m, *shape), for a network that stays as it is."""
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        with torch.no_grad():
            embedding = cast(nn.Module, model.backbone)(x)
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(F.mse_loss(self.decoder(embedding), x.flatten(1)))
            optimizer.step()
        return self

    def forward(self, model: nn.Module, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        restored = self.decoder(cast(nn.Module, model.backbone)(x))
        return F.mse_loss(restored, x.flatten(1), reduction="none").mean(1)


SELF_SUPERVISED: Registry[SelfSupervised | Reconstruction] = Registry(
    "self-supervised loss",
    {
        "smoothness": Smoothness(),
        "noise": Consistency(Noise()),
        "mask": Consistency(Mask()),
        "shift": Consistency(Shift()),
        "entropy": PredictiveEntropy(),
        "reconstruction": Reconstruction(),
    },
)


def resolve_self_supervised(loss: Any) -> SelfSupervised | Reconstruction:
    """The loss with this name, or the loss itself."""
    if isinstance(loss, str):
        return SELF_SUPERVISED[loss]
    if callable(loss) or hasattr(loss, "build"):
        given: SelfSupervised = loss
        return given
    raise InputError(
        f"secondary_loss is a {type(loss).__name__}; pass a name ({', '.join(SELF_SUPERVISED)}) or a loss such as "
        "Smoothness()"
    )


def mean_loss(loss: SelfSupervised | Reconstruction, model: nn.Module, x: torch.Tensor, batch: int) -> float:
    """The mean ℓ' of `x` (m, *shape) for a network in evaluation mode, `batch` at a time; a decoder is fitted to it
    first."""
    fitted = loss.build(model, x).settle(model, x) if isinstance(loss, Reconstruction) else loss
    with torch.no_grad():
        return float(torch.cat([fitted(model, part, forward(model, part)) for part in torch.split(x, batch)]).mean())


def _normalised(direction: torch.Tensor) -> torch.Tensor:
    """Unit length per sample; a zero direction stays zero."""
    flat = direction.flatten(1)
    # Two steps, because a tiny gradient underflows when squared.
    flat = flat / flat.abs().amax(1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    length = torch.linalg.vector_norm(flat, dim=1, keepdim=True).clamp(min=1e-12)
    return cast(torch.Tensor, (flat / length).view_as(direction))
