"""Features of a dual head, for any sample and for the labelled ones it is fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from ally.data import blocks
from ally.learning.snapshot import Snapshot, View


@dataclass(frozen=True, eq=False)
class Labelled:
    """The labelled samples of a round: their view, their labels (L,) as class numbers or targets, and their λ (L,)."""

    view: View
    labels: torch.Tensor
    duals: torch.Tensor

    @classmethod
    def of_known(cls, snapshot: Snapshot) -> Labelled:
        """The labelled samples whose λ is known: those held out of the training have none."""
        assert snapshot.labels is not None
        assert snapshot.duals is not None
        known = ~snapshot.duals.isnan()
        if bool(known.all()):
            return cls(snapshot.labelled, snapshot.labels, snapshot.duals)
        return cls(snapshot.labelled.at(known.nonzero().squeeze(1)), snapshot.labels[known], snapshot.duals[known])


class HeadFeatures(Protocol):
    def __call__(self, view: View, block: slice) -> torch.Tensor:
        """(n, F) float64 for the samples in `block`."""
        ...

    def of_labelled(self, labelled: Labelled) -> torch.Tensor:
        """(L, F) float64 for the labelled samples; a sample never describes itself."""
        ...


class EmbeddingFeatures:
    """The embedding, (n, d): the paper's input."""

    def __call__(self, view: View, block: slice) -> torch.Tensor:
        return view.embeddings[block].double()

    def of_labelled(self, labelled: Labelled) -> torch.Tensor:
        return _all(self, labelled.view)


class DoubtFeatures:
    """log(1 − p_max) and log p₂, (n, 2), for classification.

    Labelled samples are fitted far more confidently than others; on a log scale a linear function extrapolates to
    those others.
    """

    def __call__(self, view: View, block: slice) -> torch.Tensor:
        assert view.probabilities is not None
        p = view.probabilities[block].double()
        others = p.scatter(1, p.argmax(1, keepdim=True), 0.0)
        doubt: torch.Tensor = _Floor.apply(torch.stack([others.sum(1), others.amax(1)], dim=1))  # type: ignore[no-untyped-call]
        return doubt.log()

    def of_labelled(self, labelled: Labelled) -> torch.Tensor:
        return _all(self, labelled.view)


@dataclass(frozen=True)
class NeighbourFeatures:
    """How the nearest labelled samples (in the embedding) surround a sample, (n, 5), for regression.

    On a log scale: distance to the nearest and to the k-th, spread of their labels, gap between the prediction and
    their mean label; and the mean of their log(1 + λ).
    """

    labelled: Labelled
    neighbours: int = 8

    def __call__(self, view: View, block: slice) -> torch.Tensor:
        return self._describe(view, block, exclude=None)

    def of_labelled(self, labelled: Labelled) -> torch.Tensor:
        n = len(labelled.view)
        return torch.cat([self._describe(labelled.view, block, exclude=torch.arange(n)[block]) for block in blocks(n)])

    def _describe(self, view: View, block: slice, exclude: torch.Tensor | None) -> torch.Tensor:
        labels = self.labelled.labels.double()
        spread = float(labels.std(correction=0)) or 1.0
        gaps = torch.cdist(view.embeddings[block].double(), self.labelled.view.embeddings.double())
        if exclude is not None:
            gaps[torch.arange(len(gaps)), exclude] = torch.inf
        k = min(self.neighbours, len(labels) - (exclude is not None))
        if k < 1:
            return torch.zeros(len(gaps), 5, dtype=torch.float64)
        near = gaps.topk(k, dim=1, largest=False)
        around = labels[near.indices] / spread
        gap = (view.predictions[block].double() / spread - around.mean(1)).abs()
        positive = torch.stack([near.values[:, 0], near.values[:, -1], around.std(1, correction=0), gap], dim=1)
        hardness = torch.log1p(self.labelled.duals.double().cpu())[near.indices].mean(1, keepdim=True)
        return torch.cat([(positive + 1e-3).log(), hardness], dim=1)


class _Floor(torch.autograd.Function):
    """max(x, 1e-12). Gradients pass below the floor too, so even a very confident prediction can be moved."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(min=1e-12)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0]


def _all(features: HeadFeatures, view: View) -> torch.Tensor:
    return torch.cat([features(view, block) for block in blocks(len(view))])
