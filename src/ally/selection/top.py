"""The n highest scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch

from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest, picked
from ally.selection.shards import Shard, shard_crew
from ally.selection.ties import TIES, tie_order
from ally.types import BOTH_TASKS, IntArray, Task

RUN = 2**20


@dataclass(frozen=True)
class Top:
    """Of equal scores, a hash of the seed and the row decides (`ties`)."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = False

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        with shard_crew(snapshot, scores, limits, partial(Highest, n, streams.seed(TIES))) as crew:
            best = joined(crew.each("offer"), n)
        return picked(snapshot, best.positions, best.values)


class Leaders(NamedTuple):
    """Values, their positions among all candidates, and which of equal values goes first (the lower), (m,)."""

    values: torch.Tensor
    positions: torch.Tensor
    ties: torch.Tensor


NOBODY = Leaders(
    torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
)


class Highest:
    """A shard that offers its n highest scores."""

    def __init__(self, n: int, seed: int, shard: Shard) -> None:
        self._n, self._seed, self._shard = n, seed, shard

    def offer(self) -> Leaders:
        return leaders(self._shard.scores, self._n, self._shard.view.rows, self._seed, self._shard.start)


def leaders(values: torch.Tensor, n: int, rows: IntArray, seed: int, start: int = 0) -> Leaders:
    """The n largest of (m,), largest first, ties by a hash of their `rows` (m,); the first value is at position
    `start`.

    It works run by run, so that only values that may be among them take memory.
    """
    best, run = NOBODY, max(RUN, 4 * n)
    for first in range(0, len(values), run):
        here = values[first : first + run]
        ties = torch.from_numpy(tie_order(rows[first : first + run], seed))
        best = overtaken(best, Leaders(here, torch.arange(start + first, start + first + len(here)), ties), n)
    return best


def overtaken(best: Leaders, others: Leaders, n: int) -> Leaders:
    """The n largest of both."""
    if len(best.values) == n:
        last = best.values[-1]
        ahead = (others.values > last) | ((others.values == last) & (others.ties < best.ties[-1]))
        others = Leaders(*(part[ahead] for part in others))
    return joined([best, others], n)


def joined(offers: Sequence[Leaders], n: int) -> Leaders:
    """The n largest of several offers."""
    together = Leaders(*(torch.cat(parts) for parts in zip(*offers, strict=True)))
    order = largest(together.values, n, together.ties)
    return Leaders(*(part[order] for part in together))
