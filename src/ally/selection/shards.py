"""The skeleton of a greedy selection over shards; the same code for data in memory, memory-mapped or distributed.

    every shard makes an offer → one pick is chosen → every shard takes it, and makes its next offer

A worker has the methods ``offer()`` and ``take(pick)``, which returns the next offer. Values are computed row by row
and ties go to the lowest position, so the number of shards does not change the picks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from ally.data import BLOCK
from ally.execution.engine import Crew
from ally.learning.snapshot import Snapshot, View
from ally.selection.base import Limits
from ally.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Shard:
    """A run of candidates, in whole blocks except for the last shard. Nothing is copied."""

    view: View
    scores: torch.Tensor
    """(n,)"""
    start: int
    """The position of its first row among all candidates."""


class Pick(NamedTuple):
    """A candidate, and what shards must know about it."""

    value: float
    position: int
    """Among all candidates."""
    row: Any
    """Small plain values that represent it."""


def shard_crew(
    snapshot: Snapshot, scores: torch.Tensor, limits: Limits, build: Callable[[Shard], Any], work: int = 1
) -> AbstractContextManager[Crew]:
    """A worker ``build(shard)`` for every shard of the candidates, where they are held or as the engine divides them.
    `work` is the cost of a candidate relative to other selections."""
    home = snapshot.candidates.home
    if home is None:
        return limits.engine.crew(shards(snapshot, scores, limits, work), build)
    return home.guests(partial(_of_shard, build), scores)


def _of_shard(build: Callable[[Shard], Any], view: View, scores: torch.Tensor, start: int) -> Any:
    return build(Shard(view, scores, start))


def shards(snapshot: Snapshot, scores: torch.Tensor, limits: Limits, work: int = 1) -> list[Shard]:
    """The candidates in as many near-equal shards as the engine asks for, at most one per block."""
    size = len(snapshot.candidates)
    blocks = -(-size // BLOCK)
    edges = np.linspace(0, blocks, min(limits.engine.parts(size * work), blocks) + 1).astype(int) * BLOCK
    return [
        Shard(snapshot.candidates.at(slice(start, stop)), scores[start:stop], start)
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def best(picks: Iterable[Pick]) -> Pick:
    """The pick with the largest value, ties to the lowest position."""
    return max(picks, key=lambda pick: (pick.value, -pick.position))


def greedy(crew: Crew, n: int, choose: Callable[[list[Any]], Pick]) -> tuple[IntArray, FloatArray]:
    """Positions of n picks and their values; `choose` picks from the shards' offers."""
    positions, values = np.empty(n, dtype=np.int64), np.empty(n)
    offers = crew.each("offer")
    for number in range(n):
        pick = choose(offers)
        positions[number], values[number] = pick.position, pick.value
        if number + 1 < n:
            offers = crew.each("take", pick)
    return positions, values
