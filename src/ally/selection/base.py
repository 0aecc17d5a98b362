"""The contract of a selection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch

from ally.errors import BrokenPart
from ally.execution.engine import Engine, LocalEngine
from ally.execution.memory import default_budget
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.types import FloatArray, IntArray, Task


@dataclass(frozen=True, eq=False)
class Selection:
    """The picks, in the order they were made."""

    rows: IntArray
    """(b,) distinct row numbers in the pool."""
    values: FloatArray
    """(b,) why each row was picked: its score, or the gain from picking it."""
    clusters: IntArray | None = None
    """(b,) cluster of each row."""
    cluster_sizes: IntArray | None = None
    """(b,) number of candidates in that cluster."""
    notes: tuple[str, ...] = ()
    """Sentences that tell the user how the batch was picked."""


@dataclass(frozen=True)
class Limits:
    """What a selection may use beyond the snapshot."""

    memory_budget: int = field(default_factory=default_budget)
    engine: Engine = LocalEngine()
    """Runs the work on shards of the candidates."""


@runtime_checkable
class Select(Protocol):
    """A frozen dataclass that picks exactly n candidates from a snapshot, which has at least n."""

    @property
    def tasks(self) -> frozenset[Task]: ...

    reads: ClassVar[bool]
    """Whether the selection uses more of the snapshot than the scores.

    A selection, or its features, may also set ``label_free = True``: it only uses distances between samples, so it
    works before there are labels."""

    def __call__(
        self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits
    ) -> Selection: ...


def check_selection(selection: Selection, snapshot: Snapshot, n: int, select: Select) -> None:
    """Raises unless exactly n distinct candidates were picked, each with a finite value."""
    rows = np.asarray(selection.rows)
    if len(rows) != n or len(np.unique(rows)) != n or len(selection.values) != n:
        raise BrokenPart(
            f"{select} picked {len(np.unique(rows))} distinct rows ({len(rows)} in all) where {n} were asked for"
        )
    if not np.isin(rows, snapshot.candidates.rows).all():
        raise BrokenPart(
            f"{select} picked row {rows[~np.isin(rows, snapshot.candidates.rows)][0]}, which is not a candidate"
        )
    if not np.isfinite(selection.values).all():
        raise BrokenPart(
            f"{select} picked row {rows[~np.isfinite(selection.values)][0]} for a value that is NaN or infinite"
        )


def largest(values: torch.Tensor, n: int, ties: torch.Tensor | None = None) -> torch.Tensor:
    """Positions of the n largest values, largest first. (m,) → (n,) int64. Of equal values, those that are lower in
    `ties` (m,) go first; None is their position."""
    if n >= len(values):
        keep = torch.arange(len(values))
    else:
        threshold = torch.topk(values, n).values[-1]
        above = torch.nonzero(values > threshold).squeeze(1)
        equal = torch.nonzero(values == threshold).squeeze(1)
        if ties is not None:
            equal = equal[ties[equal].argsort()]
        keep = torch.cat([above, equal[: n - len(above)]]).sort().values
    if ties is not None:
        keep = keep[ties[keep].argsort()]
    return keep[torch.sort(values[keep], descending=True, stable=True).indices]


def picked(snapshot: Snapshot, positions: torch.Tensor, values: torch.Tensor) -> Selection:
    """A selection from positions among the candidates."""
    rows = snapshot.candidates.rows[positions.numpy()]
    return Selection(rows, np.asarray(values.double().numpy()))
