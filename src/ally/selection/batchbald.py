r"""BatchBALD: the batch whose labels tell most about the weights together (Kirsch et al., 2019).

Greedy on the joint mutual information of the labels of a batch S with the weights,

    I(y_S; θ) = H[E_θ Π_{i∈S} p(y_i | θ)] − Σ_{i∈S} E_θ H[p(y_i | θ)],

where H runs over all C^|S| configurations of labels. The gain of a sample never grows as the batch does (I is
submodular): a gain from an earlier pick bounds the present one, and most need not be computed again.

Labels are taken as independent given θ, so where the network is unsure the second label of one sample would count as
news. A sample with the predictions of a picked one is a copy of it to the network, and waits until no other sample adds
anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch

from ally.checks import check_count
from ally.errors import InputError, NonFiniteScore
from ally.execution.memory import check_budget
from ally.learning.posterior import PosteriorSamples, entropy, mutual_information
from ally.learning.readouts import Readout
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest, picked
from ally.sources import blocks
from ally.types import CLASSIFICATION, Task

CANDIDATES_AT_ONCE = 64
TIE = 1e-12
SAME = 1e-6


@dataclass(frozen=True)
class BatchBALD:
    """Small batches for classification. Joint mutual information is at most log K, so later picks need many samples K.

    Memory: 4·n·K·C bytes of scratch space for the n candidates (on disk above the budget), 24·m·K·C for the shortlist
        of m, and
    16·K per configuration.

    Attributes:
        samples: K for a network with dropout: masks drawn.
        members: K otherwise: networks trained.
        limit: the largest batch.
        shortlist: only this many samples with the highest mutual information are compared (at least the batch); None
            for all.
        configurations: the most configurations of labels, C^(b−1), that the b-th pick may sum over.
    """

    samples: int = 20
    members: int = 5
    limit: int = 10
    shortlist: int | None = 1000
    configurations: int = 100_000
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._readout()
        for name in ("limit", "configurations", "shortlist"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return (self._readout(),)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        samples = snapshot.candidates.readouts[self._readout().name]
        total, draws, classes = samples.shape
        feasible = self.feasible(classes)
        if n > feasible and n < total:
            raise InputError(
                f"n={n} is too large for BatchBALD with {classes} classes: it takes n <= {feasible} "
                f"(limit={self.limit}, and at most {self.configurations:,} configurations of labels, {classes}^(n-1)); "
                "ask for fewer, or use strategy='powerbald'"
            )
        kept = total if self.shortlist is None else min(total, max(n, self.shortlist))
        table = classes ** (min(n, feasible) - 1)
        check_budget(
            8 * draws * (3 * kept * classes + 2 * table),
            limits.memory_budget,
            f"BatchBALD on a shortlist of {kept} samples",
            "raise memory_budget, lower `shortlist`, or use strategy='powerbald'",
        )
        information = snapshot.candidates.mapped(partial(_information, self._readout().name))
        best = largest(information, n if n > feasible else kept)
        if n > feasible:  # everything is taken: there is nothing to choose but the order
            return picked(snapshot, best, information[best])
        order, gains = greedy(_normalized(samples[best]), n)
        return picked(snapshot, best[order], gains)

    def feasible(self, classes: int) -> int:
        """The largest batch that can be chosen for that many classes."""
        n = 1
        while n < self.limit and classes**n <= self.configurations:
            n += 1
        return n

    def _readout(self) -> PosteriorSamples:
        return PosteriorSamples(self.samples, self.members)


def greedy(p: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """n positions, each the largest gain in joint mutual information given those before, and the gains, in nats.

    `p` is (m, K, C) float64. Gains equal up to rounding go to the first position, copies after all that have a gain.
    """
    draws = p.shape[1]
    bounds = mutual_information(p)
    joint = p.new_ones(1, draws)
    positions = torch.empty(n, dtype=torch.int64)
    gains = torch.empty(n, dtype=torch.float64)
    for pick in range(n):
        if pick > 0:
            joint = (joint[:, None, :] * p[positions[pick - 1]].T).reshape(-1, draws)
        best = _tightened_best(p, joint, bounds)
        positions[pick], gains[pick] = best, bounds[best]
        copies = (p - p[best]).abs().amax((1, 2)) <= SAME
        bounds[copies] = bounds[copies].clamp(max=0.0)
        bounds[best] = -torch.inf
    return positions, gains


def _tightened_best(p: torch.Tensor, joint: torch.Tensor, bounds: torch.Tensor) -> int:
    """The position with the largest gain, given `joint` (M, K): p(y_S | θ) for all M configurations of what is picked.

    `bounds` (m,) are at least the gains, −∞ for what is picked; they become the gains where those are computed, from
    the largest bound down until no other can win; a bound of 0 (set for copies) is computed only if no other gain is
    positive.
    """
    known = float(entropy(joint.mean(1)))
    order = torch.sort(bounds, descending=True, stable=True).indices
    order = order[torch.isfinite(bounds[order])]
    highest, seen = -torch.inf, 0
    while seen < len(order) and float(bounds[order[seen]]) >= highest - TIE:
        part = order[seen : seen + CANDIDATES_AT_ONCE]
        if float(bounds[part[0]]) > 0:
            part = part[bounds[part] > 0]
        bounds[part] = (_joint_entropies(joint, p[part]) - known - entropy(p[part]).mean(1)).clamp(min=0)
        highest = max(highest, float(bounds[part].max()))
        seen += len(part)
    computed = order[:seen]
    return int(computed[bounds[computed] >= highest - TIE].min())


def _joint_entropies(joint: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """H[E_θ p(y_S | θ) p(y_i | θ)] of each sample i. `joint` is (M, K), `p` (m, K, C); (m,)."""
    m, draws, classes = p.shape
    each = p.permute(1, 0, 2).reshape(draws, m * classes) / draws
    entropies = p.new_zeros(m * classes)
    for block in blocks(len(joint)):
        entropies += torch.special.entr(joint[block] @ each).sum(0)
    return entropies.view(m, classes).sum(1)


def _information(readout: str, view: View, start: int) -> torch.Tensor:
    """(n,) mutual information of each candidate alone."""
    samples = view.readouts[readout]
    information = torch.empty(len(samples), dtype=torch.float64)
    for block in blocks(len(samples)):
        information[block] = mutual_information(_normalized(samples[block]))
    bad = ~torch.isfinite(information)
    if bool(bad.any()):
        row = int(view.rows[int(bad.nonzero()[0])])
        raise NonFiniteScore(
            f"the predictions sampled for row {row} are NaN or infinite; lower the learning rate. The round stops"
        )
    return information


def _normalized(samples: torch.Tensor) -> torch.Tensor:
    """float64 probabilities that sum to 1; their float32 rounding would otherwise show in small gains."""
    p = samples.double()
    return p / p.sum(-1, keepdim=True)
