r"""Wasserstein adversarial active learning (Shui et al., 2020): features in which the labelled set looks like the pool.

.. math:: \min_{f, h}\max_g\; \frac1{|L|}\sum_L \ell(h(f(x)), y) + \mu\Bigl(\mathbb E_U\, g(f(x)) - \mathbb E_L\,
g(f(x))\Bigr)

over critics g with Lipschitz constant 1, enforced by the penalty :math:`(\|\nabla g\| - 1)^2`. The bracket is then
the Wasserstein-1 distance between the embedded unlabelled and labelled samples (Kantorovich–Rubinstein).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import nn

from ally.checks import check_count, check_number
from ally.learning.objectives.base import Batch, Problem, Session, UnlabelledBatch
from ally.rng import Streams, seeded_torch

CRITIC = "critic"


@dataclass(frozen=True)
class WAAL:
    """Mean ℓ plus `weight` times the critic's estimate of the distance between unlabelled and labelled embeddings.

    Attributes:
        weight: μ.
        penalty: weight of the gradient penalty.
        critic_steps: steps of the critic per labelled batch.
        unlabelled_batch: unlabelled samples drawn with every labelled batch.
        width: units in each of the critic's two hidden layers.
        lr: learning rate of the critic's Adam.
    """

    weight: float = 0.01
    penalty: float = 10.0
    critic_steps: int = 3
    unlabelled_batch: int = 64
    width: int = 64
    lr: float = 1e-3

    needs: ClassVar[tuple[str, ...]] = ("extra training",)

    def __post_init__(self) -> None:
        for name in ("weight", "penalty"):
            check_number(name, getattr(self, name))
        check_number("lr", self.lr, positive=True)
        for name in ("critic_steps", "unlabelled_batch", "width"):
            check_count(name, getattr(self, name))

    def start(self, problem: Problem) -> Session:
        return _WAALSession(problem, self)


def critic_gap(critic: nn.Module, labelled: torch.Tensor, unlabelled: torch.Tensor) -> torch.Tensor:
    """E_U g − E_L g for embeddings (B, d) and (B', d)."""
    return cast(torch.Tensor, critic(unlabelled).mean() - critic(labelled).mean())


def gradient_penalty(
    critic: nn.Module, labelled: torch.Tensor, unlabelled: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Mean of (‖∇g‖ − 1)² at random points between random pairs of labelled and unlabelled embeddings."""
    size = max(len(labelled), len(unlabelled))
    ends = [
        side[torch.randint(len(side), (size,), generator=generator).to(side.device)] for side in (labelled, unlabelled)
    ]
    share = torch.rand(size, 1, generator=generator, dtype=labelled.dtype).to(labelled.device)
    points = torch.lerp(ends[0], ends[1], share).requires_grad_()
    (slopes,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    norms = cast(torch.Tensor, torch.linalg.vector_norm(slopes, dim=1))
    return (norms - 1.0).square().mean()


class _WAALSession(Session):
    def __init__(self, problem: Problem, objective: WAAL) -> None:
        super().__init__(problem)
        self.unlabelled_batch = objective.unlabelled_batch
        self._objective = objective
        self._streams = Streams(torch.initial_seed(), ("waal",))
        self._between = self._streams.torch("between")
        self._critic: nn.Module | None = None
        self._optimizer: torch.optim.Optimizer | None = None

    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        assert unlabelled is not None
        # One pass for both sides: separate batch normalisation would hide their difference from the critic.
        embeddings = cast(nn.Module, model.backbone)(torch.cat([batch.x, unlabelled.x]))
        ours, theirs = embeddings[: len(batch.x)], embeddings[len(batch.x) :]
        critic = self._ascended(ours.detach(), theirs.detach())
        risk = self.problem.loss(cast(nn.Module, model.head)(ours), batch.targets).mean()
        return risk + self._objective.weight * critic_gap(critic, ours, theirs)

    def modules(self) -> dict[str, nn.Module]:
        return {} if self._critic is None else {CRITIC: self._critic}

    def _ascended(self, labelled: torch.Tensor, unlabelled: torch.Tensor) -> nn.Module:
        """The critic after its steps on this batch."""
        critic = self._critic or self._build(labelled)
        assert self._optimizer is not None
        for _ in range(self._objective.critic_steps):
            penalty = gradient_penalty(critic, labelled, unlabelled, self._between)
            value = self._objective.penalty * penalty - critic_gap(critic, labelled, unlabelled)
            self._optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(value, inputs=list(critic.parameters()))
            self._optimizer.step()
        return critic

    def _build(self, embeddings: torch.Tensor) -> nn.Module:
        width = self._objective.width
        with seeded_torch(self._streams.seed("weights")):
            critic = nn.Sequential(
                nn.Linear(embeddings.shape[1], width),
                nn.ReLU(),
                nn.Linear(width, width),
                nn.ReLU(),
                nn.Linear(width, 1),
            )
        self._critic = critic.to(device=embeddings.device, dtype=embeddings.dtype)
        self._optimizer = torch.optim.Adam(
            self._critic.parameters(), lr=self._objective.lr, betas=(0.5, 0.9), fused=True
        )
        return self._critic
