r"""Readouts that sample the predictive distribution p(y | x, θ), θ ~ q, block by block.

A sample θ is one draw of the dropout masks of a network with dropout (Gal & Ghahramani, 2016), one tree of a forest, or
one member of an ensemble. A draw is the *same predictor for every sample of the pool*: predictions of two samples under
the same θ can then be combined into a joint distribution, and copies of a sample agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from ally.checks import check_count
from ally.errors import InputError
from ally.learning.geometry import len_of
from ally.learning.learner import Fitted


@dataclass(frozen=True)
class _Sampling:
    """K = `samples` draws of the dropout masks, all trees of a forest, or one learner for each of the `members` of an
    ensemble where there is neither."""

    samples: int = 20
    members: int = 5

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise InputError.about("samples", self.samples, ": a spread needs at least 2 samples; 20 are usual")
        if self.members < 1:
            raise InputError.about(
                "members", self.members, "is not positive; pass the number of networks to train, or 1 with dropout only"
            )

    @property
    def name(self) -> str:
        return repr(self)

    def _predictions(self, fits: Sequence[Fitted], x: Any, seed: int) -> Sequence[torch.Tensor]:
        """K times (B, C) probabilities, or (B, 1) predictions in standardised units, float64."""
        return sampled_outputs(fits, x, self.samples, seed)


@dataclass(frozen=True)
class MutualInformationReadout(_Sampling):
    """(B,) I(y; θ | x) = H[E p] − E H[p] in nats; for regression the variance of the predictions, in standardised
    units."""

    def __call__(self, fits: Sequence[Fitted], x: Any, seed: int, start: int) -> torch.Tensor:
        predictions = self._predictions(fits, x, seed)
        if fits[0].task == "regression":
            return torch.cat(list(predictions), dim=1).var(1, correction=0).float()
        count = 0
        total, expected = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for p in predictions:
            count += 1
            total = total + p
            expected = expected + entropy(p)
        return (entropy(total / count) - expected / count).clamp(min=0).float()


@dataclass(frozen=True)
class SpreadReadout:
    """(B,) the standard deviation of predicted numbers over draws of θ, in standardised units; 0 for a learner that has
    no spread of its own, and for classes. Nothing is trained for it.

    Attributes:
        samples: dropout masks, or trees, at most.
    """

    samples: int = 50
    members: ClassVar[int] = 1
    optional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("samples", self.samples, least=2)

    @property
    def name(self) -> str:
        return repr(self)

    def __call__(self, fits: Sequence[Fitted], x: Any, seed: int, start: int) -> torch.Tensor:
        fit = fits[0]
        if fit.task == "classification" or not fit.spreads:
            return torch.zeros(len_of(x))
        return torch.cat(list(fit.sampled(x, self.samples, seed)), dim=1).std(1, correction=0).float()


@dataclass(frozen=True)
class PosteriorSamples(_Sampling):
    """(B, K, C) probabilities, or (B, K, 1) predictions in standardised units. A pool of n takes 4·n·K·C bytes of
    scratch space."""

    def __call__(self, fits: Sequence[Fitted], x: Any, seed: int, start: int) -> torch.Tensor:
        return torch.stack([p.float() for p in self._predictions(fits, x, seed)], dim=1)


@dataclass(frozen=True)
class DisagreementReadout:
    """(B,) how often the predicted class changes when embeddings lose units: DropQuery (Gupte et al., 2024).

    The share of `samples` whose predicted class differs from that of the whole embedding, each with a fraction `rate`
    of its units dropped; for regression the standard deviation of the predictions, in standardised units. Only the
    embedding is perturbed, so that no dropout is needed.
    """

    samples: int = 3
    rate: float = 0.75

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InputError.about("samples", self.samples, "is not positive; 3 are usual")
        if not 0 < self.rate < 1:
            raise InputError.about("rate", self.rate, "is not a share of units to drop; pass a number in (0, 1)")

    @property
    def name(self) -> str:
        return repr(self)

    @property
    def members(self) -> int:
        return 1

    def __call__(self, fits: Sequence[Fitted], x: Any, seed: int, start: int) -> torch.Tensor:
        dropped = fits[0].dropped(x, self.samples, self.rate, seed + start)
        if fits[0].task == "regression":
            return torch.cat(list(dropped), dim=1).std(1, correction=0).float()
        whole = fits[0].outputs(x).argmax(1)
        return torch.stack([outputs.argmax(1) != whole for outputs in dropped]).float().mean(0)


def sampled_outputs(fits: Sequence[Fitted], x: Any, samples: int, seed: int) -> Sequence[torch.Tensor]:
    """`Fitted.outputs` for each θ, on the CPU: those of the first fit if it spreads, or one per fit."""
    if fits[0].spreads or len(fits) == 1:
        return fits[0].sampled(x, samples, seed)
    return [fit.outputs(x) for fit in fits]


def mutual_information(p: torch.Tensor) -> torch.Tensor:
    """(n, K, C) float64 probabilities → (n,) H[E p] − E H[p]."""
    return (entropy(p.mean(1)) - entropy(p).mean(1)).clamp(min=0)


def entropy(p: torch.Tensor) -> torch.Tensor:
    """−Σ p log p over the last dimension, in nats."""
    terms: torch.Tensor = torch.special.entr(p)
    return terms.sum(-1)
