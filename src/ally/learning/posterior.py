r"""Readouts that sample the predictive distribution p(y | x, θ), θ ~ q, block by block.

A sample θ is one draw of the dropout masks of a network with dropout (Gal & Ghahramani, 2016), or one member of an
ensemble. A draw of masks is the *same network for every sample of the pool*: predictions of two samples under the same
θ can then be combined into a joint distribution, and copies of a sample agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional as F

from ally.errors import InputError, ModelError
from ally.learning.fit import Fit
from ally.models import has_dropout
from ally.models.split import DROPOUT
from ally.rng import seeded_torch


@dataclass(frozen=True)
class _Sampling:
    """K = `samples` draws of the dropout masks, or one network for each of the `members` of an ensemble where there is
    no dropout."""

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

    def _predictions(self, fits: Sequence[Fit], x: torch.Tensor, seed: int) -> Iterator[torch.Tensor]:
        """K times (B, C) probabilities, or (B, 1) predictions in standardised units, float64."""
        for outputs in sampled_outputs(fits, x, self.samples, seed):
            yield outputs.double().softmax(1) if fits[0].task == "classification" else outputs.double()


@dataclass(frozen=True)
class MutualInformationReadout(_Sampling):
    """(B,) I(y; θ | x) = H[E p] − E H[p] in nats; for regression the variance of the predictions, in standardised
    units."""

    def __call__(self, fits: Sequence[Fit], x: torch.Tensor, seed: int, start: int) -> torch.Tensor:
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
class PosteriorSamples(_Sampling):
    """(B, K, C) probabilities, or (B, K, 1) predictions in standardised units. A pool of n takes 4·n·K·C bytes of
    scratch space."""

    def __call__(self, fits: Sequence[Fit], x: torch.Tensor, seed: int, start: int) -> torch.Tensor:
        return torch.stack([p.float() for p in self._predictions(fits, x, seed)], dim=1)


@dataclass(frozen=True)
class DisagreementReadout:
    """(B,) how often the head changes its mind when embeddings lose units: DropQuery (Gupte et al., 2024).

    The share of `samples` whose predicted class differs from that of the whole embedding, each with a fraction `rate`
    of its units dropped; for regression the standard deviation of the predictions, in standardised units. Only the
    embedding is perturbed, so this is defined for every network.
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

    def __call__(self, fits: Sequence[Fit], x: torch.Tensor, seed: int, start: int) -> torch.Tensor:
        model = fits[0].model
        head = cast(nn.Module, model.head)
        with torch.inference_mode(), _restored_modes(model), seeded_torch(seed + start, str(x.device)):
            embedding = cast(nn.Module, model.backbone)(x)
            whole = head(embedding).cpu()
            dropped = [head(F.dropout(embedding, self.rate, training=True)).cpu() for _ in range(self.samples)]
        if fits[0].task == "regression":
            return torch.cat(dropped, dim=1).double().std(1, correction=0).float()
        return torch.stack([outputs.argmax(1) != whole.argmax(1) for outputs in dropped]).float().mean(0)


def sampled_outputs(fits: Sequence[Fit], x: torch.Tensor, samples: int, seed: int) -> list[torch.Tensor]:
    """Outputs (B, C or 1) for each θ, on the CPU: `samples` draws of masks from the first fit, or one per fit without
    dropout."""
    model = fits[0].model
    if has_dropout(model):
        with seeded_torch(seed, str(x.device)), shared_masks(model):
            return [fits[0].embed(x)[1] for _ in range(samples)]
    if len(fits) > 1:
        return [fit.embed(x)[1] for fit in fits]
    raise ModelError(
        f"{type(model).__name__} has no dropout and there is one network, so predictions have no spread; use a model "
        "with dropout, such as model=functools.partial(MLP, dropout=0.2), or members > 1"
    )


@contextmanager
def shared_masks(model: nn.Module) -> Iterator[None]:
    """Within, dropout layers drop, each call with one mask for all rows (the first dimension); all else is in
    evaluation mode.

    Given its mask, dropout of any kind is affine in its input, so what it makes of zeros and ones tells what it does to
    a row.
    """

    def drop(layer: nn.Module, inputs: Any, outputs: torch.Tensor) -> torch.Tensor:
        row = torch.ones_like(outputs[:1])
        layer.train()
        try:
            with torch.random.fork_rng(devices=[row.device] if row.is_cuda else []):
                shift: torch.Tensor = layer.forward(torch.zeros_like(row))
            scale: torch.Tensor = layer.forward(row) - shift
        finally:
            layer.eval()
        return outputs * scale + shift

    layers = [layer for layer in model.modules() if isinstance(layer, DROPOUT) and layer.p > 0]
    with _restored_modes(model):
        handles = [layer.register_forward_hook(drop) for layer in layers]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


@contextmanager
def _restored_modes(model: nn.Module) -> Iterator[None]:
    """Evaluation mode within; every module's own mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def mutual_information(p: torch.Tensor) -> torch.Tensor:
    """(n, K, C) float64 probabilities → (n,) H[E p] − E H[p]."""
    return (entropy(p.mean(1)) - entropy(p).mean(1)).clamp(min=0)


def entropy(p: torch.Tensor) -> torch.Tensor:
    """−Σ p log p over the last dimension, in nats."""
    terms: torch.Tensor = torch.special.entr(p)
    return terms.sum(-1)
