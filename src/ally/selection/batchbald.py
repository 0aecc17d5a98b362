r"""BatchBALD: the batch whose labels together tell most about the weights (Kirsch et al., 2019).

It greedily maximises the joint mutual information between the labels of a batch S and the weights,

    I(y_S; θ) = H[E_θ Π_{i∈S} p(y_i | θ)] − Σ_{i∈S} E_θ H[p(y_i | θ)],

where H sums over all C^|S| configurations of labels. The gain of a sample never grows as the batch does (I is
submodular), so a gain from an earlier pick bounds the current one, and most need not be computed again.

Labels are assumed independent given θ, so where the network is unsure, labelling the same sample twice would count as
new information. A sample with the same predictions as a picked one is a copy of it to the network. Copies wait until no
other sample adds anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch

from ally.checks import check_count
from ally.data import blocks
from ally.errors import InputError, NonFiniteScore
from ally.execution.memory import check_budget
from ally.learning.posterior import PosteriorSamples, entropy, mutual_information
from ally.learning.readouts import Readout
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest, picked
from ally.types import CLASSIFICATION, Task

CANDIDATES_AT_ONCE = 64
TIE = 1e-12
SAME = 1e-6


@dataclass(frozen=True)
class BatchBALD:
    """Small batches for classification. Joint mutual information is at most log K, so later picks need a large K.

    Memory: 4·n·K·C bytes of scratch space for the n candidates (on disk above the budget), 24·m·K·C for a shortlist of
    m, and 16·K per configuration.

    Attributes:
        samples: K for a network with dropout: the number of masks.
        members: K for other networks: the number trained.
        limit: the largest batch.
        shortlist: compare only this many samples, those with the highest mutual information (at least the batch); None
            compares all.
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
        if n > feasible:  # every candidate is taken, so only the order is left to choose
            return picked(snapshot, best, information[best])
        order, gains = greedy(_normalized(samples[best]), n)
        return picked(snapshot, best[order], gains)

    def feasible(self, classes: int) -> int:
        """The largest possible batch for that many classes."""
        n = 1
        while n < self.limit and classes**n <= self.configurations:
            n += 1
        return n

    def _readout(self) -> PosteriorSamples:
        return PosteriorSamples(self.samples, self.members)


def greedy(p: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """n positions, each with the largest gain in joint mutual information given those before, and the gains in nats.

    `p` is (m, K, C) float64. Among gains equal up to rounding the first position wins. Copies come after every sample
    that has a gain.
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
    """The position with the largest gain, given `joint` (M, K): p(y_S | θ) for all M label configurations of the picks.

    `bounds` (m,) are upper bounds on the gains, −∞ for picks. Gains are computed from the largest bound down until no
    other can win, and replace their bounds. A bound of 0 (set for copies) is computed only if no other gain is
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
    """(n,) mutual information of each candidate on its own."""
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
    """float64 probabilities that sum to 1; otherwise float32 rounding would show in small gains."""
    p = samples.double()
    return p / p.sum(-1, keepdim=True)
