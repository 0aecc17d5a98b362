r"""Variational adversarial active learning (Sinha et al., 2019): a game between a β-VAE and a discriminator, alongside
the task.

The VAE sees labelled and unlabelled samples and minimises :math:`\mathcal L_{VAE} + w\,\mathcal L_{adv}` with, on
either side,

.. math:: \mathcal L_{VAE} = -\mathbb E\log p(x|z) + \beta\,\mathrm{KL}(q(z|x)\,\|\,p(z)), \quad
          \mathcal L_{adv} = -\mathbb E\log D(z_L) - \mathbb E\log D(z_U),

while the discriminator minimises :math:`-\mathbb E\log D(z_L) - \mathbb E\log(1 - D(z_U))`. The discriminator learns
which samples are labelled, and the VAE learns to make all of them look labelled. The task is trained exactly as with
`ERM`, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import nn
from torch.nn import functional as F

from ally.checks import check_count, check_number
from ally.errors import InputError
from ally.learning.objectives.base import Batch, Problem, Session, UnlabelledBatch, forward
from ally.rng import Streams, seeded_torch

VAE, DISCRIMINATOR = "vae", "discriminator"


@dataclass(frozen=True)
class VAAL:
    """Mean ℓ for the task; alongside it a VAE, and a discriminator between labelled and unlabelled latents.

    Attributes:
        beta: weight of the KL term.
        latent: size of z.
        adversary: weight of the adversarial term (λ₂ in the paper), relative to the VAE's own loss in nats per sample.
            If it dominates, all samples look alike and the discriminator learns nothing.
        vae_steps: steps of the VAE per labelled batch.
        discriminator_steps: steps of the discriminator per labelled batch.
        unlabelled_batch: unlabelled samples drawn with every labelled batch.
        width: units per hidden layer; feature maps of an image start at a quarter of it.
        lr: learning rate of both Adams.
    """

    beta: float = 1.0
    latent: int = 32
    adversary: float = 1.0
    vae_steps: int = 2
    discriminator_steps: int = 1
    unlabelled_batch: int = 64
    width: int = 128
    lr: float = 5e-4

    needs: ClassVar[tuple[str, ...]] = ("extra training",)

    def __post_init__(self) -> None:
        for name in ("beta", "adversary"):
            check_number(name, getattr(self, name))
        check_number("lr", self.lr, positive=True)
        for name in ("latent", "vae_steps", "discriminator_steps", "unlabelled_batch"):
            check_count(name, getattr(self, name))
        check_count("width", self.width, least=4)

    def start(self, problem: Problem) -> Session:
        return _VAALSession(problem, self)


class BetaVAE(nn.Module):
    """Gaussian encoder and unit-variance Gaussian decoder; convolutions for images of 8×8 and more, else fully
    connected.

    Samples are first shifted and scaled by the mean and spread of the first batch, so that raw pixels work as well as
    scaled ones.
    """

    shift: torch.Tensor
    scale: torch.Tensor

    def __init__(self, sample: torch.Tensor, latent: int, width: int) -> None:
        super().__init__()
        shape = tuple(sample.shape[1:])
        spread = float(sample.double().std()) if sample.numel() > 1 else 0.0
        self.register_buffer("shift", torch.tensor(float(sample.double().mean())))
        self.register_buffer("scale", torch.tensor(spread if spread > 0 else 1.0))
        images = len(shape) == 3 and min(shape[1:]) >= 8
        self.encoder, self.decoder, inner = (
            _convolutional(shape, latent, width) if images else _connected(shape, latent, width)
        )
        self.to_mean, self.to_log_variance = nn.Linear(inner, latent), nn.Linear(inner, latent)

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.shift) / self.scale

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and log variance of q(z|x), (B, latent) each, for scaled samples."""
        inner = self.encoder(x)
        return self.to_mean(inner), cast(torch.Tensor, self.to_log_variance(inner)).clamp(-12.0, 12.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mean of q(z|x), (B, latent), for raw samples."""
        return self.encode(self.scaled(x))[0]


def negative_elbo(
    x: torch.Tensor, decoded: torch.Tensor, mean: torch.Tensor, log_variance: torch.Tensor, beta: float
) -> torch.Tensor:
    """½‖x − x̂‖² + β KL(q(z|x) ‖ N(0, I)) per sample, (B,), without the constant of the Gaussian."""
    error = 0.5 * (x - decoded).square().flatten(1).sum(1)
    return error + beta * 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(1)


def _connected(shape: Sequence[int], latent: int, width: int) -> tuple[nn.Module, nn.Module, int]:
    size = math.prod(shape)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    layers = [nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, size)]
    return encoder, nn.Sequential(*layers, nn.Unflatten(1, tuple(shape))), width


def _convolutional(shape: Sequence[int], latent: int, width: int) -> tuple[nn.Module, nn.Module, int]:
    """Convolutions with stride 2 down to about 4×4, and back by upsampling through the same sizes."""
    channels, size = [shape[0]], [tuple(shape[1:])]
    while max(size[-1]) > 4:
        channels.append(min(width, (width // 4) * 2 ** (len(channels) - 1)))
        size.append(tuple(-(-side // 2) for side in size[-1]))
    down: list[nn.Module] = []
    up: list[nn.Module] = []
    for level in range(1, len(channels)):
        down += [nn.Conv2d(channels[level - 1], channels[level], 3, stride=2, padding=1), nn.ReLU()]
        up = [
            nn.ReLU(),
            nn.Upsample(size=size[level - 1]),
            nn.Conv2d(channels[level], channels[level - 1], 3, padding=1),
            *up,
        ]
    inner = channels[-1] * math.prod(size[-1])
    return (
        nn.Sequential(*down, nn.Flatten()),
        nn.Sequential(nn.Linear(latent, inner), nn.Unflatten(1, (channels[-1], *size[-1])), *up),
        inner,
    )


def discriminator(latent: int, width: int) -> nn.Module:
    """z (B, latent) → log-odds of being labelled, (B, 1)."""
    return nn.Sequential(nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))


@dataclass
class _Game:
    """The two players and their optimisers."""

    vae: BetaVAE
    discriminator: nn.Module
    vae_step: torch.optim.Optimizer
    discriminator_step: torch.optim.Optimizer


class _VAALSession(Session):
    def __init__(self, problem: Problem, objective: VAAL) -> None:
        super().__init__(problem)
        self.unlabelled_batch = objective.unlabelled_batch
        self._objective = objective
        self._streams = Streams(torch.initial_seed(), ("vaal",))
        self._noise = self._streams.torch("noise")
        self._game: _Game | None = None

    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        assert unlabelled is not None
        self._play(batch.x, unlabelled.x)
        return self.problem.loss(forward(model, batch.x), batch.targets).mean()

    def modules(self) -> dict[str, nn.Module]:
        return {} if self._game is None else {VAE: self._game.vae, DISCRIMINATOR: self._game.discriminator}

    def _play(self, labelled: torch.Tensor, unlabelled: torch.Tensor) -> None:
        samples = torch.cat([labelled, unlabelled])
        game = self._game or self._build(samples)
        x = game.vae.scaled(samples)
        for _ in range(self._objective.vae_steps):
            value = self._vae_loss(game, x, len(labelled))
            game.vae_step.zero_grad(set_to_none=True)
            torch.autograd.backward(value, inputs=list(game.vae.parameters()))
            game.vae_step.step()
        with torch.no_grad():
            means = game.vae.encode(x)[0]
        for _ in range(self._objective.discriminator_steps):
            odds = game.discriminator(means).squeeze(1)
            value = F.softplus(-odds[: len(labelled)]).mean() + F.softplus(odds[len(labelled) :]).mean()
            game.discriminator_step.zero_grad(set_to_none=True)
            torch.autograd.backward(value)
            game.discriminator_step.step()

    def _vae_loss(self, game: _Game, x: torch.Tensor, n: int) -> torch.Tensor:
        """The first n rows of `x` are labelled."""
        mean, log_variance = game.vae.encode(x)
        noise = torch.randn(mean.shape, generator=self._noise, dtype=mean.dtype).to(mean.device)
        decoded = game.vae.decoder(mean + noise * (0.5 * log_variance).exp())
        elbo = negative_elbo(x, decoded, mean, log_variance, self._objective.beta)
        odds = game.discriminator(mean).squeeze(1)
        adversarial = F.softplus(-odds[:n]).mean() + F.softplus(-odds[n:]).mean()
        return elbo[:n].mean() + elbo[n:].mean() + self._objective.adversary * adversarial

    def _build(self, samples: torch.Tensor) -> _Game:
        if not samples.is_floating_point():
            raise InputError(
                f"VAAL reconstructs its samples, and these are {samples.dtype}; pass floating-point features, or use "
                "LearningLoss"
            )
        objective = self._objective
        with seeded_torch(self._streams.seed("weights")):
            vae = BetaVAE(samples, objective.latent, objective.width).to(device=samples.device, dtype=samples.dtype)
            judge = discriminator(objective.latent, objective.width).to(device=samples.device, dtype=samples.dtype)
        steps = (torch.optim.Adam(part.parameters(), lr=objective.lr, fused=True) for part in (vae, judge))
        self._game = _Game(vae, judge, *steps)
        return self._game
