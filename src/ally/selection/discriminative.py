"""Discriminative active learning (Gissin & Shalev-Shwartz, 2019): make the labelled set indistinguishable from the
pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, cast

import torch
from torch import nn
from torch.nn import functional as F

from ally.checks import check_count, check_number
from ally.data import BLOCK, blocks
from ally.errors import InputError
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams, seeded_torch
from ally.selection.base import Limits, Selection, largest, picked
from ally.types import BOTH_TASKS, Task

BATCH = 128
CHECK_EVERY = 20


@dataclass(frozen=True)
class Discriminative:
    """Trains a classifier of labelled against unlabelled embeddings and picks the samples most likely to be unlabelled;
    a pick's value is its log-odds.

    The batch is picked in near-equal sub-batches. Each joins the labelled side before a new classifier is fitted, so
    the next sub-batch goes where the pool is not covered yet. Without labelled samples the first pick is the embedding
    with the largest norm.

    Attributes:
        sub_batches: how often the classifier is fitted.
        accuracy: balanced training accuracy at which a fit stops. Like the paper, it stops short of a perfect fit, so
            that samples similar to labelled ones do not confidently count as unlabelled.
        width: units in each of its three hidden layers.
        steps: the largest number of steps per fit.
        ratio: unlabelled samples per labelled one that a fit may use; all candidates are scored.
        lr: learning rate of its Adam.
    """

    sub_batches: int = 10
    accuracy: float = 0.98
    width: int = 128
    steps: int = 200
    ratio: int = 10
    lr: float = 1e-3
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("sub_batches", "width", "steps", "ratio"):
            check_count(name, getattr(self, name))
        if not 0 < self.accuracy <= 1:
            raise InputError.about("accuracy", self.accuracy, "is not a share; pass a number in (0, 1]")
        check_number("lr", self.lr, positive=True)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        view, candidates, labelled = snapshot.candidates, snapshot.candidates.points, snapshot.labelled.points
        positions: list[torch.Tensor] = []
        values: list[torch.Tensor] = []
        if not len(labelled):
            norms = view.mapped(_norms)
            positions.append(norms.argmax()[None])
            values.append(norms[positions[0]])
            labelled = candidates.new_empty(0, candidates.shape[1])
        scale = _Scale.of(view, labelled)
        free = torch.ones(len(candidates), dtype=torch.bool)
        left = n - len(positions)
        for number, size in enumerate(_near_equal(left, self.sub_batches)):
            taken = torch.cat(positions) if positions else torch.empty(0, dtype=torch.int64)
            free[taken] = False
            covered = torch.cat([labelled, candidates[taken]])
            classifier = self._fit(candidates, covered, free, scale, streams.child(f"sub-batch {number}"))
            odds = view.mapped(partial(_odds, classifier, scale))
            odds[~free] = -torch.inf
            positions.append(largest(odds, size))
            values.append(odds[positions[-1]])
        return picked(snapshot, torch.cat(positions), torch.cat(values))

    def _fit(
        self, candidates: torch.Tensor, covered: torch.Tensor, free: torch.Tensor, scale: _Scale, streams: Streams
    ) -> nn.Module:
        """A classifier with positive log-odds for unlabelled samples. Both sides have equal weight."""
        generator = streams.torch("batches")
        pool = torch.nonzero(free).squeeze(1)
        drawn = pool[torch.randperm(len(pool), generator=generator)[: self.ratio * len(covered)]]
        ours, theirs = scale(covered), scale(candidates[drawn.sort().values])
        with seeded_torch(streams.seed("weights")):
            classifier = _network(ours.shape[1], self.width)
        optimizer = torch.optim.Adam(classifier.parameters(), lr=self.lr, fused=True)
        turns = [_turns(side, generator) for side in (ours, theirs)]
        for step in range(1, self.steps + 1):
            labelled, unlabelled = (next(turn) for turn in turns)
            odds = classifier(torch.cat([labelled, unlabelled])).squeeze(1)
            value = F.softplus(odds[: len(labelled)]).mean() + F.softplus(-odds[len(labelled) :]).mean()
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(value)
            optimizer.step()
            if step % CHECK_EVERY == 0 and _balanced_accuracy(classifier, ours, theirs) >= self.accuracy:
                break
        return classifier


@dataclass(frozen=True)
class _Scale:
    """Standardises embeddings feature by feature; a feature that does not vary becomes 0."""

    mean: torch.Tensor
    std: torch.Tensor

    @classmethod
    def of(cls, view: View, labelled: torch.Tensor) -> _Scale:
        count = len(view) + len(labelled)
        mean = torch.cat([view.mapped(partial(_point_sums, None)), _sums(labelled)]).sum(0) / count
        squares = torch.cat([view.mapped(partial(_point_sums, mean)), _sums(labelled, mean)])
        std = (squares.sum(0) / count).sqrt()
        return cls(mean, torch.where(std > 1e-6 * mean.abs(), std, torch.inf))

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        return ((rows.double() - self.mean) / self.std).float()


def _sums(rows: torch.Tensor, mean: torch.Tensor | None = None) -> torch.Tensor:
    """For each block and feature, the sum over its rows, or of squared distances to the mean."""
    found = torch.empty(-(-len(rows) // BLOCK), rows.shape[1], dtype=torch.float64)
    for number, block in enumerate(blocks(len(rows))):
        some = rows[block].double()
        found[number] = (some if mean is None else (some - mean).square()).sum(0)
    return found


def _point_sums(mean: torch.Tensor | None, view: View, start: int) -> torch.Tensor:
    return _sums(view.points, mean)


def _norms(view: View, start: int) -> torch.Tensor:
    return torch.cat([view.points[block].double().norm(dim=1) for block in blocks(len(view))])


def _odds(classifier: nn.Module, scale: _Scale, view: View, start: int) -> torch.Tensor:
    odds = torch.empty(len(view), dtype=torch.float64)
    with torch.inference_mode():
        for block in blocks(len(view)):
            odds[block] = classifier(scale(view.points[block])).squeeze(1).double()
    return odds


def _network(inputs: int, width: int) -> nn.Module:
    layers: list[nn.Module] = []
    for size in (inputs, width, width):
        layers += [nn.Linear(size, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def _turns(rows: torch.Tensor, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Endless batches, each pass in a new order."""
    while True:
        for index in torch.randperm(len(rows), generator=generator).tensor_split(-(-len(rows) // BATCH)):
            yield rows[index]


def _balanced_accuracy(classifier: nn.Module, labelled: torch.Tensor, unlabelled: torch.Tensor) -> float:
    with torch.inference_mode():
        sides = [
            torch.cat([cast(torch.Tensor, classifier(side[block])) for block in blocks(len(side))])
            for side in (labelled, unlabelled)
        ]
    return 0.5 * float((sides[0] < 0).float().mean() + (sides[1] > 0).float().mean())


def _near_equal(n: int, parts: int) -> list[int]:
    """n as a sum of at most `parts` positive numbers that differ by at most one."""
    parts = min(n, parts)
    return [n // parts + (place < n % parts) for place in range(parts)] if parts else []
