"""A batch chosen with outliers, near duplicates and what scores above a bound set aside."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch

from ally.data import blocks
from ally.execution.memory import Scratch
from ally.hygiene.distances import farthest, find_near, find_repeats
from ally.hygiene.settings import Hygiene, SetAside
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Selection, largest
from ally.types import IntArray

PAIRS = 4096
REPEATS = 64

Pick: TypeAlias = Callable[[Snapshot, torch.Tensor, int], Selection]
"""Snapshot, scores (m,), n → exactly n of the candidates."""


def choose(
    hygiene: Hygiene,
    snapshot: Snapshot,
    scores: torch.Tensor,
    n: int,
    pick: Pick,
    met: Sequence[torch.Tensor],
    streams: Streams,
    scratch: Scratch,
    bound: float = math.inf,
) -> tuple[Selection, SetAside]:
    """n candidates by `pick`, and what was set aside for it.

    `met` are points (m, d) that picks keep apart from, besides each other. Only as many outliers are set aside as can
    be spared. Candidates that score above `bound` are not asked about; where too few others are left, the lowest of
    them come last in the batch.
    """
    part, recalled = below(snapshot, scores, bound, n, scratch)
    selection, aside = _choose(hygiene, Subsets(*part, scratch), n, pick, met, streams)
    above = int((scores > bound).sum())
    return put_last(selection, recalled), replace(aside, bound=above, recalled=aside.recalled + len(recalled))


def below(
    snapshot: Snapshot, scores: torch.Tensor, bound: float, n: int, scratch: Scratch
) -> tuple[tuple[Snapshot, torch.Tensor], IntArray]:
    """The candidates that score no higher than the bound, with their scores; and rows of others that were recalled for
    want of n."""
    keep = scores <= bound
    above = (~keep).nonzero().squeeze(1)
    missing = n - int(keep.sum())
    recalled = above[largest(-scores[above], missing)] if missing > 0 else above[:0]
    keep[recalled] = True
    return Subsets(snapshot, scores, scratch)(keep), snapshot.candidates.rows[recalled.numpy()]


def _choose(
    hygiene: Hygiene, subsets: Subsets, n: int, pick: Pick, met: Sequence[torch.Tensor], streams: Streams
) -> tuple[Selection, SetAside]:
    """The same without a bound."""
    candidates = subsets.snapshot.candidates
    keep = torch.ones(len(candidates), dtype=torch.bool)
    if len(candidates) == n or not hygiene.compares:
        return pick(*subsets(keep), n), SetAside()
    points = candidates.points
    if hygiene.outliers is not None:
        spare = min(int(hygiene.outliers * len(candidates)), len(candidates) - n)
        keep[farthest(candidates, spare, streams)] = False
    outliers = int((~keep).sum())
    if hygiene.duplicates != "near":
        return pick(*subsets(keep), n), SetAside(outliers=outliers)
    limit = (hygiene.near * typical_distance(points, keep.nonzero().squeeze(1), streams)) ** 2
    selection, near, recalled = keep_apart(subsets, keep, n, pick, met, limit)
    return selection, SetAside(near=near, outliers=outliers, recalled=recalled)


def typical_distance(points: torch.Tensor, positions: torch.Tensor, streams: Streams) -> float:
    """Root mean square of the distance between two points at `positions` (m,), over a seeded sample of pairs; 0 for one
    point."""
    if len(positions) < 2:
        return 0.0
    draws, size = streams.numpy("pairs"), len(positions)
    one = draws.integers(size, size=PAIRS)
    other = (one + draws.integers(1, size, size=PAIRS)) % size
    total = 0.0
    for block in blocks(PAIRS):
        apart = points[positions[one[block]]].double() - points[positions[other[block]]].double()
        total += float(apart.square().sum())
    return float(np.sqrt(total / PAIRS))


def keep_apart(
    subsets: Subsets,
    keep: torch.Tensor,
    n: int,
    pick: Pick,
    met: Sequence[torch.Tensor],
    limit: float,
) -> tuple[Selection, int, int]:
    """Picks n of those to `keep`, sets aside the picks near `met` or near an earlier pick, and picks again until there
    are none.

    When fewer than n are left, those set aside first are recalled; after `REPEATS` rounds the last picks stand. Returns
    the selection with those recalled at its end, how many were set aside, and how many recalled. `keep` (m,) is changed
    in place.
    """
    rows, points = subsets.snapshot.candidates.rows, subsets.snapshot.candidates.points
    cleared = torch.zeros_like(keep)
    aside: list[int] = []
    for _ in range(REPEATS):
        selection = pick(*subsets(keep), n)
        places = torch.from_numpy(np.searchsorted(rows, selection.rows))
        fresh = places[~cleared[places]]
        cleared[fresh] = True
        for others in met:
            cleared[fresh] &= ~find_near(points[fresh], others, limit)
        clash = ~cleared[places]
        clash[~clash] = find_repeats(points[places[~clash]], limit)
        if not bool(clash.any()):
            return selection, len(aside), 0
        keep[places[clash]] = False
        aside += places[clash].tolist()
        missing = n - int(keep.sum())
        if missing > 0:
            recalled = aside[:missing]
            keep[recalled] = True
            return put_last(pick(*subsets(keep), n), rows[recalled]), len(aside), missing
    return put_last(selection, selection.rows[clash.numpy()]), len(aside), int(clash.sum())


def put_last(selection: Selection, rows: IntArray) -> Selection:
    """The same picks with `rows`, some of them, at the end in the order given."""
    if not len(rows):
        return selection
    late = {row: place for place, row in enumerate(rows.tolist(), start=1)}
    order = np.argsort([late.get(row, 0) for row in selection.rows.tolist()], kind="stable")
    clusters, sizes = selection.clusters, selection.cluster_sizes
    return Selection(
        rows=selection.rows[order],
        values=selection.values[order],
        clusters=None if clusters is None else clusters[order],
        cluster_sizes=None if sizes is None else sizes[order],
    )


class Subsets:
    """Parts of one snapshot and its scores, (n,). The next part overwrites the last, so that all take the space of one
    copy."""

    def __init__(self, snapshot: Snapshot, scores: torch.Tensor, scratch: Scratch) -> None:
        self.snapshot = snapshot
        self._scores = scores
        self._scratch = scratch
        self._space: dict[str, torch.Tensor] = {}

    def __call__(self, keep: torch.Tensor) -> tuple[Snapshot, torch.Tensor]:
        """The candidates where `keep`, (n,) bool, is true, and their scores."""
        if bool(keep.all()):
            return self.snapshot, self._scores
        positions = keep.nonzero().squeeze(1)
        part = self.snapshot.among(positions, lambda name, values: self._rows(name, values, positions))
        return part, self._scores[positions]

    def _rows(self, name: str, values: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        if name not in self._space:
            self._space[name] = self._scratch.empty(*values.shape)
        space = self._space[name][: len(positions)]
        for block in blocks(len(positions)):
            space[block] = values[positions[block]]
        return space
