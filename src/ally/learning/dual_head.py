r"""Predicting λ for samples without a label: f_ω on top of the frozen network (paper, section 4.2).

`PaperHead` is the paper's; `RidgeHead` is the default. `FittedHead` ranks by log(1 + λ), `FittedHead.duals` gives λ.
The rank quality of a head is the Spearman correlation of λ with predictions for held-out folds of the labelled set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from ally.checks import check_count
from ally.data import blocks
from ally.errors import InputError
from ally.learning.fitted_network import input_dtype
from ally.learning.head_features import DoubtFeatures, EmbeddingFeatures, HeadFeatures, Labelled, NeighbourFeatures
from ally.learning.snapshot import View
from ally.rng import Streams, seeded_torch

Predict = Callable[[torch.Tensor], torch.Tensor]
"""(n, F) float64 features → (n,) float64 log(1 + λ)."""
Solve = Callable[[torch.Tensor, torch.Tensor, Streams], Predict]
"""(n, F) float64 features and their λ (n,), not all equal → a predictor of it."""


@dataclass(frozen=True, eq=False)
class FittedHead:
    """A head fitted on the labelled samples of one snapshot."""

    features: HeadFeatures
    predict: Predict
    rank_quality: float | None
    """Cross-validated Spearman correlation with λ; None when it is not defined (few labels, or equal λ)."""
    constant: bool = False
    """Whether all λ were equal, so that every sample gets the same prediction."""

    def __call__(self, view: View) -> torch.Tensor:
        """Predicted log(1 + λ) of every sample, below 0 where a head goes there: the ranking, (n,) float64."""
        return view.mapped(self._of)

    def _of(self, view: View, start: int) -> torch.Tensor:
        values = torch.empty(len(view), dtype=torch.float64)
        for block in blocks(len(view)):
            values[block] = self.predict(self.features(view, block))
        return values

    def duals(self, view: View) -> torch.Tensor:
        """Predicted λ ≥ 0 of every sample, (n,) float64."""
        return torch.expm1(self(view).clamp(min=0.0, max=700.0))


class DualHead(Protocol):
    """A frozen description of a head."""

    def fit(self, labelled: Labelled, streams: Streams) -> FittedHead: ...


@dataclass(frozen=True)
class RidgeHead:
    """Ridge regression of log(1 + λ) on a few functions of the embedding.

    For classification the functions come from the prediction head (`DoubtFeatures`), for regression from the labelled
    neighbours (`NeighbourFeatures`). The strength of the ridge is chosen by leave-one-out error, in closed form.
    """

    folds: int = 5
    strengths: tuple[float, ...] = (1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)

    def __post_init__(self) -> None:
        check_count("folds", self.folds, least=2)
        if not self.strengths:
            raise InputError("strengths is empty; give at least one")

    def fit(self, labelled: Labelled, streams: Streams) -> FittedHead:
        features = NeighbourFeatures(labelled) if labelled.view.probabilities is None else DoubtFeatures()
        return _fit(labelled, streams, self.folds, features, self._solve)

    def _solve(self, x: torch.Tensor, duals: torch.Tensor, streams: Streams) -> Predict:
        raw = torch.log1p(duals)
        centre, spread = float(raw.mean()), float(raw.std(correction=0))
        target = (raw - centre) / spread
        mean, std = x.mean(0), _safe_std(x)
        u, s, vt = torch.linalg.svd((x - mean) / std, full_matrices=False)
        projected = u.T @ target
        best: tuple[float, torch.Tensor] | None = None
        for strength in self.strengths:
            shrink = s.square() / (s.square() + strength)
            leverage = u.square() @ shrink + 1 / len(target)
            residual = (target - u @ (shrink * projected)) / (1 - leverage).clamp(min=1e-6)
            error = float(residual.square().mean())
            if best is None or error < best[0]:
                best = error, vt.T @ (s / (s.square() + strength) * projected)
        assert best is not None
        return _Linear(mean, std, best[1] * spread, centre)


@dataclass(frozen=True)
class PaperHead:
    """f_ω: ℝᵈ → ℝ₊ of the paper: d–128–64–64–32–16–1 on the raw embedding, fitted to λ by the mean squared error.

    ReLU, batch norm, dropout .3 and .25; a softplus keeps the output above 0. Adam without weight decay: nothing but
    the error is minimised. λ is measured in units of its mean, which moves no minimum but suits the step size. Unlike
    the authors' code, it shuffles and drops no sample in training or scoring.
    """

    folds: int = 2
    epochs: int = 60
    lr: float = 3e-3

    def fit(self, labelled: Labelled, streams: Streams) -> FittedHead:
        return _fit(labelled, streams, self.folds, EmbeddingFeatures(), self._solve)

    def _solve(self, x: torch.Tensor, duals: torch.Tensor, streams: Streams) -> Predict:
        unit = float(duals.mean())
        inputs, targets = x.float(), (duals / unit).float()
        shuffle = streams.torch("head shuffle")
        with seeded_torch(streams.seed("head weights")):
            net = _paper_net(x.shape[1])
            optimizer = torch.optim.Adam(net.parameters(), lr=self.lr)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.epochs)
            for _ in range(self.epochs):
                for index in torch.tensor_split(torch.randperm(len(x), generator=shuffle), max(1, len(x) // 64)):
                    if len(index) < 2:
                        continue
                    optimizer.zero_grad(set_to_none=True)
                    torch.autograd.backward((net(inputs[index]).squeeze(1) - targets[index]).square().mean())
                    optimizer.step()
                schedule.step()
        return _Network(net, unit)


@dataclass(frozen=True, eq=False)
class _Linear:
    mean: torch.Tensor
    std: torch.Tensor
    weights: torch.Tensor
    offset: float

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        return ((features - self.mean) / self.std) @ self.weights + self.offset


class _Network(nn.Module):
    """Frozen parameters: autograd records nothing for them, but gradients still reach features that require them."""

    def __init__(self, net: nn.Sequential, unit: float) -> None:
        super().__init__()
        self.net = net
        self.unit = unit
        self.eval().requires_grad_(False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.net(features.to(input_dtype(self.net)))
        return torch.log1p(self.unit * output.squeeze(1).double())


def _fit(labelled: Labelled, streams: Streams, folds: int, features: HeadFeatures, solve: Solve) -> FittedHead:
    x, duals = features.of_labelled(labelled), labelled.duals.double().cpu()
    quality = None if _all_equal(duals) else _rank_quality(x, duals, streams, folds, solve)
    return FittedHead(features, _solved(x, duals, streams, solve), quality, _all_equal(duals))


def _solved(x: torch.Tensor, duals: torch.Tensor, streams: Streams, solve: Solve) -> Predict:
    """A predictor of λ; a constant if all λ are equal."""
    if _all_equal(duals):
        nothing = torch.zeros(x.shape[1], dtype=torch.float64)
        return _Linear(nothing, torch.ones_like(nothing), nothing, float(torch.log1p(duals).mean()))
    return solve(x, duals, streams)


def _all_equal(duals: torch.Tensor) -> bool:
    return float(torch.log1p(duals).std(correction=0)) <= 1e-12


def _rank_quality(x: torch.Tensor, duals: torch.Tensor, streams: Streams, folds: int, solve: Solve) -> float | None:
    n = len(x)
    if n < 4 * folds:
        return None
    fold = torch.from_numpy(streams.numpy("head folds").permutation(n) % folds)
    held_out = torch.empty(n, dtype=torch.float64)
    for k in range(folds):
        held_out[fold == k] = _solved(x[fold != k], duals[fold != k], streams, solve)(x[fold == k])
    if float(held_out.std()) == 0.0:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(held_out.numpy(), duals.numpy()).statistic)


def _safe_std(x: torch.Tensor) -> torch.Tensor:
    std = x.std(0, correction=0)
    return torch.where(std > 1e-12, std, torch.ones_like(std))


def _paper_net(inputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number, width in enumerate((128, 64, 64, 32, 16), start=1):
        layers += [nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU()]
        if number in (2, 4):
            layers.append(nn.Dropout(0.3 if number == 2 else 0.25))
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 1), nn.Softplus())
