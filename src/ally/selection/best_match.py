r"""Monte-Carlo best matching: the batch that best matches the picks of a sequential policy (Azimi et al., 2012).

The policy runs for b steps on S simulated label paths (`paths.py`). With P_s the picks of path s, the batch B of size b
maximises

    F(B) = mean over s of  max over one-to-one π: B → P_s of  Σ_{x ∈ B} κ(x, π(x)),      κ(x, x') = exp(−‖x − x'‖² /
    σ²),

greedily over ⋃ P_s, so every pick is one that the policy made on some path. The value of an assignment is monotone and
submodular in B, so the greedy batch reaches at least 1 − 1/e of the best value.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ally.checks import check_count, check_number
from ally.errors import InputError
from ally.execution.memory import check_budget
from ally.features import Embedding, ProductRows, Representation
from ally.learning.readouts import readouts_of
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.scoring import PredictedDual, Score
from ally.selection.base import Limits, Selection, largest, picked
from ally.selection.paths import label_paths
from ally.types import BOTH_TASKS, FloatArray, IntArray, Task

FIRST_BATCH = 32
TIE = 1e-12


@dataclass(frozen=True)
class BestMatch:
    """A pick's value is what it adds to F: 1 if every path contains it.

    The policy scores the shortlist ``paths * n`` times, on views updated with the simulated labels; that is most of the
    cost. If the objective keeps λ for the candidates themselves, labels do not change it, and all paths are the same.

    Attributes:
        policy: the score of the sequential policy; it may use all of a snapshot except readouts.
        paths: S, the number of label paths.
        shortlist: consider only the ``shortlist * n`` candidates with the highest scores; None considers all.
        ridge: how strongly the head resists simulated labels, on embeddings of unit mean square length, see `paths.py`.
        bandwidth: σ; None uses the median distance from a pick to the nearest other pick on its path, ignoring copies.
            Samples closer than the spacing of a batch then match each other.
        features: the space of x in κ.
    """

    policy: Score = PredictedDual()
    paths: int = 8
    shortlist: int | None = 20
    ridge: float = 1.0
    bandwidth: float | None = None
    features: Representation = Embedding()
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.policy, (type, str)) or not isinstance(self.policy, Score):
            raise InputError.about("policy", self.policy, "is not a score; pass an instance such as Margin()")
        if readouts_of(self.policy):
            raise InputError(
                f"policy={self.policy} reads the network itself, which does not follow simulated labels; use a score "
                "of predictions or duals, such as Margin(), Entropy() or PredictedDual()"
            )
        check_count("paths", self.paths)
        if self.shortlist is not None:
            check_count("shortlist", self.shortlist)
        check_number("ridge", self.ridge, positive=True)
        if self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, positive=True)

    @property
    def tasks(self) -> frozenset[Task]:
        return BOTH_TASKS & self.policy.tasks

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        among = torch.arange(len(scores))
        if self.shortlist is not None and self.shortlist * n < len(scores):
            among = largest(scores, self.shortlist * n).sort().values
        self._check_budget(snapshot, len(among), n, limits.memory_budget)
        shortlisted = snapshot.among(among)
        found = label_paths(shortlisted, self.policy, n, self.paths, self.ridge, streams).places
        union, members = np.unique(found.ravel(), return_inverse=True)
        members = members.reshape(found.shape)
        ground = torch.from_numpy(union)
        gaps = squared_distances(self.features(shortlisted.candidates.at(ground)))
        gaps /= -((self.bandwidth or spacing(gaps, members)) ** 2)
        positions, gains = greedy_matching(Matching(np.exp(gaps, out=gaps), members), n)
        return picked(snapshot, among[ground[torch.from_numpy(positions)]], torch.from_numpy(gains))

    def _check_budget(self, snapshot: Snapshot, m: int, n: int, budget: int) -> None:
        view, known = snapshot.candidates, len(snapshot.labelled)
        size = view.embeddings.shape[1] + 1
        outputs = 1 if view.probabilities is None else view.probabilities.shape[1]
        union = min(m, self.paths * n)
        head = 4 * (m + known) * size + 3 * size**2 + 4 * self.paths * m * outputs + self.paths * n * (3 * n + 2 * size)
        check_budget(
            8 * (head + 2 * union**2 + 4 * n**2),
            budget,
            f"BestMatch with {self.paths} paths of {n} picks from {m} candidates",
            "raise memory_budget, lower `paths` or `shortlist`, or ask for fewer",
        )


def squared_distances(rows: ProductRows) -> FloatArray:
    """‖x_i − x_j‖², (u, u) float64, minus a margin for rounding, so that copies are at exactly 0."""
    inner = functools.reduce(torch.mul, [factor.double() @ factor.double().T for factor in rows.factors])
    norms = (1.0 - 8.0 * torch.finfo(inner.dtype).eps) * inner.diagonal()
    return inner.mul_(-2.0).add_(norms[:, None]).add_(norms[None, :]).clamp_(min=0.0).numpy()


def spacing(gaps: FloatArray, members: IntArray) -> float:
    """Median distance from a pick to the nearest other one on its path, ignoring distances of 0; 1 if none are left.

    `gaps` are squared distances, (u, u); `members` (S, b) the samples of each path.
    """
    on_paths = (gaps[np.ix_(path, path)] for path in members)
    nearest = np.concatenate([np.where(apart > 0, apart, np.inf).min(1) for apart in on_paths])
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(np.sqrt(nearest))) if len(nearest) else 1.0


class Matching:
    """The best assignment of the chosen samples to each path's picks (its slots), and what another sample would add.

    A slot's price is what the assignment would lose without that slot. It is 0 for an empty slot. Otherwise it is the
    smallest loss over chains in which the holder moves to another slot, that slot's holder to the next, and so on to an
    empty one. The gain of a sample x on a path is then exactly the largest κ(x, slot) − price, and the assignment
    changes along the chain of that slot.
    """

    def __init__(self, weights: FloatArray, members: IntArray) -> None:
        """`weights` (u, u) is κ between the samples; `members` (S, b) are the samples of each path."""
        self._weights, self._members = weights, members
        self._holders = np.full(members.shape, -1)
        self._moves = np.zeros(members.shape, dtype=np.int64)
        self._prices = np.zeros(members.shape)

    def __len__(self) -> int:
        return len(self._weights)

    @property
    def value(self) -> float:
        """F of the chosen samples."""
        paths, slots = np.nonzero(self._holders >= 0)
        return float(self._weights[self._holders[paths, slots], self._members[paths, slots]].sum()) / len(self._holders)

    def gains(self, which: IntArray) -> FloatArray:
        """What each of `which` would add to F, in single precision so that rounding does not decide between copies."""
        total = np.zeros(len(which))
        for path, prices in zip(self._members, self._prices, strict=True):
            total += (self._weights[np.ix_(which, path)] - prices).max(1)
        return (total / len(self._members)).astype(np.float32).astype(np.float64)

    def add(self, sample: int) -> None:
        for path in range(len(self._holders)):
            holders, moves = self._holders[path], self._moves[path]
            moving, slot = sample, int((self._weights[sample, self._members[path]] - self._prices[path]).argmax())
            while moving >= 0:
                moving, holders[slot] = holders[slot], moving
                slot = moves[slot]
            self._reprice(path)

    def _reprice(self, path: int) -> None:
        """Shortest chains to an empty slot (Bellman–Ford); no cycle of moves among holders gains anything."""
        holders = self._holders[path]
        taken, empty = np.flatnonzero(holders >= 0), np.flatnonzero(holders < 0)
        if not len(empty):
            return
        each = np.arange(len(taken))
        held = self._weights[np.ix_(holders[taken], self._members[path])]
        losses = held[each, taken][:, None] - held
        first = losses[:, empty].argmin(1)
        prices, moves = losses[each, empty[first]], empty[first]
        between = losses[:, taken]
        between[each, each] = np.inf
        for _ in taken:
            chains = between + prices
            best = chains.argmin(1)
            shorter = chains[each, best] < prices - TIE
            if not shorter.any():
                break
            prices = np.where(shorter, chains[each, best], prices)
            moves = np.where(shorter, taken[best], moves)
        self._prices[path, taken], self._moves[path, taken] = prices, moves


def greedy_matching(matching: Matching, n: int) -> tuple[IntArray, FloatArray]:
    """n samples, each with the largest gain given those before (the first among equals), and the gains.

    Gains never grow, so a gain from an earlier pick bounds the current one. Only those that may still win are computed
    again.
    """
    bounds = matching.gains(np.arange(len(matching)))
    positions, added = np.empty(n, dtype=np.int64), np.empty(n)
    for pick in range(n):
        fresh = np.full(len(bounds), pick == 0)
        batch = FIRST_BATCH
        while not fresh[head := int(bounds.argmax())]:
            stale = np.flatnonzero(~fresh & np.isfinite(bounds))
            again = stale[np.argsort(-bounds[stale], kind="stable")[:batch]]
            bounds[again] = matching.gains(again)
            fresh[again] = True
            batch *= 2
        positions[pick], added[pick] = head, bounds[head]
        bounds[head] = -np.inf
        matching.add(head)
    return positions, added
