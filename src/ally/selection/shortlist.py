"""Any selection, run on the highest scores only. It lets diversity methods such as k-center follow a score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from ally.checks import check_count
from ally.learning.readouts import Readout, readouts_of
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Select, Selection, largest
from ally.selection.kmeanspp import KMeansPP
from ally.types import Task


@dataclass(frozen=True)
class Shortlist:
    """Runs `select` on the ``times * n`` candidates with the highest scores."""

    select: Select = field(default_factory=KMeansPP)
    times: int = 20
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("times", self.times)

    @property
    def tasks(self) -> frozenset[Task]:
        """The tasks that the selection and its representation support."""
        return frozenset(self.select.tasks & getattr(self.select, "features", self.select).tasks)

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return readouts_of(self.select, getattr(self.select, "features", None))

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        if self.times * n >= len(scores):
            return self.select(snapshot, scores, n, streams, limits)
        places = largest(scores, self.times * n).sort().values
        return self.select(snapshot.among(places), scores[places], n, streams, limits)
