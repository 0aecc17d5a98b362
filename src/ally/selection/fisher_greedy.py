r"""BAIT: greedy Bayesian A-optimal design on the last layer's Fisher information (Ash et al., 2021).

Minimise tr(AF), where A⁻¹ = λI + (labelled information) + (picked information) and F is the mean information of the
pool. 2n rows are added one by one, each time the one that lowers the objective most; then n are removed, each time the
one whose loss raises it least.

Most rows need not be kept up to date. With Q and G as in `fisher_forms` and μ the largest eigenvalue of AF, G ≼ μQ, so

    gain = tr((I + Q)⁻¹G) ≤ μ tr((I + Q)⁻¹Q),

and both factors only fall while rows are added. Q and G are kept up to date only for rows whose bound reaches half the
best gain; no other row can be picked until the best gain has halved. Then μ is bounded again, and the rows that reach
the new mark are computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch

from ally.checks import check_count, check_number
from ally.data import BLOCK
from ally.errors import NonFiniteInput
from ally.execution.engine import Crew, LocalCrew
from ally.execution.memory import check_budget
from ally.features.fisher import FisherRows, most_uncertain_classes, together, total_information
from ally.features.product import OVERFLOW
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.selection.fisher_design import Step, first_design
from ally.selection.fisher_forms import CHUNK, Forms
from ally.selection.shards import Pick, Shard, shard_crew
from ally.types import BOTH_TASKS, FloatArray, IntArray, Task

TIE = 1e-9
"""Gains that agree to nine digits count as equal; the first row wins."""
FRESH = 1e-3
"""Everything is recomputed when the best gain has fallen to this share of what it was, because AFA falls with its
square while its rounding error stays."""


@dataclass(frozen=True)
class FisherGreedy:
    """Greedy choice by Fisher information; the value of a pick is how much it lowered the objective.

    Attributes:
        ridge: λ of the reference implementation.
        oversample: ``oversample * n`` are picked before removal.
        classes: None is exact. A number is an approximation for many classes: it keeps apart only the classes − 1 whose
            predictions vary most over the candidates, by Σ p(1 − p), and merges all others into one. The full number
            of classes changes nothing.
    """

    ridge: float = 1.0
    oversample: float = 2.0
    classes: int | None = None
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("ridge", self.ridge, positive=True)
        check_number("oversample", self.oversample, positive=True)
        if self.classes is not None:
            check_count("classes", self.classes, least=2)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        candidates, p = snapshot.candidates, snapshot.candidates.probabilities
        found = 1 if p is None else p.shape[1]
        classes = min(self.classes or found, found)
        parts = min(limits.engine.parts(len(candidates) * classes**2), -(-len(candidates) // BLOCK))
        check_budget(
            memory(len(candidates), candidates.embeddings.shape[1], classes, parts),
            limits.memory_budget,
            f"BAIT on {len(candidates)} candidates with {classes} classes",
            "raise memory_budget, pass fewer `candidates`, tell fewer classes apart with FisherGreedy(classes=k), "
            "or use strategy='badge'",
        )
        apart = None if p is None or classes == found else most_uncertain_classes(p, classes - 1)
        labelled = FisherRows(snapshot.labelled.embeddings, snapshot.labelled.probabilities, apart)
        worker = partial(_candidates, apart, weight(labelled, n))
        with shard_crew(snapshot, scores, limits, worker, work=classes**2) as crew:
            state = FisherState(crew, labelled, len(candidates), n, self.ridge)
            forward = min(len(candidates), max(n, int(self.oversample * n)))
            positions, gains = state.add(forward)
            keep = state.remove(positions, forward - n)
        selection = picked(snapshot, positions[keep], gains[keep])
        if apart is None:
            return selection
        note = (
            f"BAIT told {classes - 1} of {found} classes apart and took the others as one "
            f"(classes={self.classes}): an approximation"
        )
        return replace(selection, notes=(note,))


def memory(n: int, size: int, classes: int, parts: int) -> int:
    """The most bytes needed: every candidate is kept up to date."""
    k = max(1, classes - 1)
    held = (n + parts * CHUNK) * (k * (k + 1) + (classes if classes > 1 else 0) + 6)
    chunks = parts * BLOCK * (size * (k + 3) + 4 * classes**2 + 2 * k**2)
    return 8 * (held + 2 * chunks + (10 + 2 * parts) * (k * size) ** 2)


def _candidates(apart: torch.Tensor | None, scale: float, shard: Shard) -> Candidates:
    return Candidates((shard.start, FisherRows(shard.view.embeddings, shard.view.probabilities, apart)), scale)


def weight(labelled: FisherRows, n: int) -> float:
    """The weight of a pick relative to the labelled samples: s = n / (L + n)."""
    return n / (len(labelled) + n)


def information(candidates: FisherRows, labelled: FisherRows, n: int, ridge: float) -> FisherState:
    """The state before any pick, with all candidates in one place."""
    crew = LocalCrew([(0, candidates)], partial(Candidates, scale=weight(labelled, n)), threads=1)
    return FisherState(crew, labelled, len(candidates), n, ridge)


class Candidates:
    """A worker: one run of candidates, some of which are kept up to date."""

    def __init__(self, part: tuple[int, FisherRows], scale: float) -> None:
        self._start, self._rows = part
        self._forms = Forms(self._rows, scale, len(self._rows))
        self._free = np.ones(len(self._rows), dtype=bool)
        self._reach: FloatArray = np.empty(0)

    def information(self) -> torch.Tensor:
        """Σ W ⊗ hhᵀ, (kd, kd)."""
        return total_information(self._rows)

    def survey(self, inverse: torch.Tensor) -> float:
        """Computes tr((I + Q)⁻¹Q) of every row and returns the largest."""
        self._reach = self._forms.survey(inverse)
        return float(self._reach.max())

    def rally(self, inverse: torch.Tensor, spread: torch.Tensor, least: float, fresh: bool) -> Pick | None:
        """From now on, keeps the rows whose tr((I + Q)⁻¹Q) reaches `least` up to date. Returns the best of them."""
        self._reach[self._forms.places] = self._forms.reaches()
        if fresh:
            self._forms.hold(self._forms.places[:0], inverse, spread)
        self._forms.hold(np.flatnonzero(self._free & (self._reach >= least)), inverse, spread)
        return self._offer()

    def take(self, position: int, step: Step) -> Pick | None:
        """Updates for a pick. Returns the best of the rows that are kept up to date."""
        if 0 <= position - self._start < len(self._free):
            self._free[position - self._start] = False
        self._forms.take(step)
        return self._offer()

    def _offer(self) -> Pick | None:
        places = self._forms.places
        free = self._free[places]
        if not free.any():
            return None
        gains = np.where(free, self._forms.gains(), -np.inf)
        if not np.isfinite(gains.max()):
            raise NonFiniteInput(OVERFLOW)
        place = int(places[best_places(gains)].min())
        return Pick(float(gains.max()), self._start + place, self._rows.copy(slice(place, place + 1)))


class FisherState:
    """The coordinator of a crew of `Candidates`: adds some of them, then removes some of those."""

    def __init__(self, crew: Crew, labelled: FisherRows, count: int, n: int, ridge: float) -> None:
        self._crew, self._scale = crew, weight(labelled, n)
        classes = 1 if labelled.probabilities is None else labelled.unknowns + 1
        self._design = first_design(crew.each("information"), count, labelled, classes, n, ridge)
        self._rows: dict[int, FisherRows] = {}
        self._highest = 0.0
        self._least = 0.5 * max(crew.each("survey", self._design.inverse))
        """Candidates whose tr((I + Q)⁻¹Q) reaches this are kept up to date."""
        if not math.isfinite(self._least) or not math.isfinite(self._design.ceiling):
            raise NonFiniteInput(OVERFLOW)
        self._offers = self._rally(0.0)

    def add(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Picks `count` candidates one by one. Returns their positions and how much each lowered the objective."""
        positions, gains = torch.empty(count, dtype=torch.int64), torch.empty(count, dtype=torch.float64)
        for number in range(count):
            pick = self._best()
            gains[number], step = self._design.take(pick.row.take(slice(None), self._scale), 1.0)
            positions[number], self._rows[pick.position] = pick.position, pick.row
            self._offers = self._crew.each("take", pick.position, step)
        return positions, gains

    def remove(self, positions: torch.Tensor, count: int) -> torch.Tensor:
        """Removes `count` of the picked `positions`. Returns the places in `positions` that stay, in order."""
        rows = together([self._rows[position] for position in positions.tolist()])
        forms = Forms(rows, self._scale, len(rows))
        self._design.renew()
        forms.hold(np.arange(len(rows)), self._design.inverse, self._design.spread)
        keep = np.ones(len(rows), dtype=bool)
        for _ in range(count):
            place = int(best_places(np.where(keep, forms.gains(-1.0), -np.inf))[0])
            keep[place] = False
            forms.take(self._design.take(rows.take(slice(place, place + 1), self._scale), -1.0)[1])
        return torch.from_numpy(np.flatnonzero(keep))

    def _best(self) -> Pick:
        """The best of all candidates: those not kept up to date gain less than μ · least."""
        pick = best_pick(self._offers)
        while self._least > 0.0 and pick.value <= 1.001 * self._design.ceiling * self._least:
            self._design.tighten()
            # When nothing gains any more, every row is kept, because rounding can make a reach negative.
            self._least = (
                0.5 * pick.value / self._design.ceiling if min(pick.value, self._design.ceiling) > 0.0 else -math.inf
            )
            self._offers = self._rally(pick.value)
            pick = best_pick(self._offers)
        return pick

    def _rally(self, gain: float) -> list[Pick | None]:
        fresh = gain < FRESH * self._highest
        if fresh:
            self._design.renew()
        self._highest = gain if fresh else max(gain, self._highest)
        return self._crew.each("rally", self._design.inverse, self._design.spread, self._least, fresh)


def best_places(gains: FloatArray) -> IntArray:
    """Where the gain is the largest, ties included, in ascending order."""
    return np.flatnonzero(gains >= gains.max() - TIE * abs(gains.max()))


def best_pick(offers: Iterable[Pick | None]) -> Pick:
    """The best offer, ties to the lowest position; an offer of −1 if there is none."""
    found = [offer for offer in offers if offer is not None]
    if not found:
        return Pick(-1.0, -1, None)
    ties = best_places(np.asarray([offer.value for offer in found]))
    return found[min(ties.tolist(), key=lambda place: found[place].position)]
