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
from ally.types import BOTH_TASKS, Task

RUN = 2**20


@dataclass(frozen=True)
class Top:
    """Ties go to the lowest row."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = False

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        with shard_crew(snapshot, scores, limits, partial(Highest, n)) as crew:
            best = joined(crew.each("offer"), n)
        return picked(snapshot, best.positions, best.values)


class Leaders(NamedTuple):
    """Values and their positions among all candidates, (m,)."""

    values: torch.Tensor
    positions: torch.Tensor


NOBODY = Leaders(torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.int64))


class Highest:
    """A shard that offers its n highest scores."""

    def __init__(self, n: int, shard: Shard) -> None:
        self._n, self._shard = n, shard

    def offer(self) -> Leaders:
        return leaders(self._shard.scores, self._n, self._shard.start)


def leaders(values: torch.Tensor, n: int, start: int = 0) -> Leaders:
    """The n largest of (m,), largest first, ties by position; the first value is at position `start`.

    It works run by run, so that only values that may be among them take memory.
    """
    best, run = NOBODY, max(RUN, 4 * n)
    for first in range(0, len(values), run):
        here = values[first : first + run]
        best = overtaken(best, Leaders(here, torch.arange(start + first, start + first + len(here))), n)
    return best


def overtaken(best: Leaders, others: Leaders, n: int) -> Leaders:
    """The n largest of both; `others` come after `best`, in order of position."""
    if len(best.values) == n:
        # An equal value loses, because its position is higher.
        ahead = others.values > best.values[-1]
        others = Leaders(others.values[ahead], others.positions[ahead])
    return joined([best, others], n)


def joined(offers: Sequence[Leaders], n: int) -> Leaders:
    """The n largest of several offers, given in order of position."""
    values, positions = (torch.cat(parts) for parts in zip(*offers, strict=True))
    order = largest(values, n)
    return Leaders(values[order], positions[order])
