"""Scores from a network trained alongside the model: a loss predictor, a discriminator, a critic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, cast

import torch
from torch import nn

from ally.checks import check_number
from ally.errors import InputError, ModelError
from ally.learning.fitted_network import FittedNetwork
from ally.learning.learner import Fitted
from ally.learning.objectives.learning_loss import LOSS_PREDICTION, LossPrediction, read_layers
from ally.learning.objectives.vaal import DISCRIMINATOR, VAE
from ally.learning.objectives.waal import CRITIC
from ally.learning.readouts import Readout
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.types import BOTH_TASKS, CLASSIFICATION, Task

Bound = Literal["mean", "l1", "l2", "worst"]
Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class PredictedLoss:
    """Learning Loss (Yoo & Kweon, 2019): the loss that the module predicts, on its own scale."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return (_PredictedLosses(),)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        return Scored(_read(snapshot, self.readouts[0]))


@dataclass(frozen=True)
class Discriminator:
    """VAAL (Sinha et al., 2019): the discriminator's log-odds that a sample is unlabelled. They rank samples as the
    probability does."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return (_UnlabelledOdds(),)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        return Scored(_read(snapshot, self.readouts[0]))


@dataclass(frozen=True)
class CriticUncertainty:
    """WAAL (Shui et al., 2020): ``weight * g(x) − bound(x)``, the negative of what the paper minimises.

    g is the critic, high where the pool is unlike the labelled set. The bound limits the loss under any label. It is a
    norm of −log p, smallest for the uniform distribution, so uncertain samples score high.

    Attributes:
        weight: weight of the critic relative to the uncertainty.
        bound: ``"worst"`` for max_k −log p_k, ``"l2"``, ``"l1"``, or ``"mean"`` for the mean of the last two.
    """

    weight: float = 10.0
    bound: Bound = "mean"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("weight", self.weight)
        if self.bound not in ("mean", "l1", "l2", "worst"):
            raise InputError.about("bound", self.bound, "; pass 'mean', 'l1', 'l2' or 'worst'")

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return (_CriticAndBound(self.bound),)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        critic, bound = _read(snapshot, self.readouts[0]).unbind(1)
        return Scored(self.weight * critic - bound)


def loss_bound(log_probabilities: torch.Tensor, bound: Bound) -> torch.Tensor:
    """A norm of −log p, (n, C) → (n,)."""
    if bound == "worst":
        return -log_probabilities.amin(1)
    l1, l2 = -log_probabilities.sum(1), cast(torch.Tensor, torch.linalg.vector_norm(log_probabilities, dim=1))
    return {"l1": l1, "l2": l2, "mean": 0.5 * (l1 + l2)}[bound]


@dataclass(frozen=True)
class _PredictedLosses:
    name: ClassVar[str] = "predicted loss"
    members: ClassVar[int] = 1

    def __call__(self, fits: Sequence[Fitted], x: Any, seed: int, start: int) -> torch.Tensor:
        fit, module = _trained(fits[0], LOSS_PREDICTION, LossPrediction, "the predicted loss", "LearningLoss()")
        with torch.inference_mode():
            return cast(torch.Tensor, module(read_layers(_part(fit, "backbone"), module.names, x))).float().cpu()


@dataclass(frozen=True)
class _UnlabelledOdds:
    name: ClassVar[str] = "unlabelled odds"
    members: ClassVar[int] = 1

    def __call__(self, fits: Sequence[Fitted], x: Any, seed: int, start: int) -> torch.Tensor:
        vae, judge = (
            _trained(fits[0], name, nn.Module, "the discriminator", "VAAL()")[1] for name in (VAE, DISCRIMINATOR)
        )
        with torch.inference_mode():
            return -cast(torch.Tensor, judge(vae(x))).squeeze(1).float().cpu()


@dataclass(frozen=True)
class _CriticAndBound:
    """(B, 2): g(x), and the bound computed from log-probabilities, which stay finite when a probability rounds to 0."""

    bound: Bound
    members: ClassVar[int] = 1

    @property
    def name(self) -> str:
        return f"critic and {self.bound} bound"

    def __call__(self, fits: Sequence[Fitted], x: Any, seed: int, start: int) -> torch.Tensor:
        fit, critic = _trained(fits[0], CRITIC, nn.Module, "the critic", "WAAL()")
        with torch.inference_mode():
            embedding = _part(fit, "backbone")(x)
            outputs = _part(fit, "head")(embedding)
            bound = loss_bound(outputs.double().log_softmax(1), self.bound)
            return torch.stack([critic(embedding).squeeze(1).double(), bound], 1).float().cpu()


def _read(snapshot: Snapshot, readout: Readout) -> torch.Tensor:
    read = snapshot.candidates.readouts
    if readout.name not in read:
        raise InputError(f"the snapshot holds no {readout.name!r}; pass the score's readouts to `view`, as `Loop` does")
    return read[readout.name].double()


def _trained(fit: Fitted, name: str, kind: type[Module], what: str, objective: str) -> tuple[FittedNetwork, Module]:
    """The fit as a network, and the network with this name that was trained alongside it."""
    if not isinstance(fit, FittedNetwork):
        raise ModelError(
            f"{what} needs a network trained alongside the model, and the model is a {type(fit).__name__}; use a "
            "network, such as model='mlp', or another strategy"
        )
    module = fit.modules.get(name)
    if not isinstance(module, kind):
        trained = ", ".join(fit.modules) or "none"
        raise InputError(
            f"{what} needs a network that this objective did not train (it trained: {trained}); use "
            f"objective={objective}"
        )
    return fit, module


def _part(fit: FittedNetwork, name: str) -> nn.Module:
    return cast(nn.Module, getattr(fit.model, name))
