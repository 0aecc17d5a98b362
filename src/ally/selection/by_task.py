"""One selection for classification, another for regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from ally.features import Inputs
from ally.learning.readouts import Readout, readouts_of
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Select, Selection
from ally.selection.herding import Herding
from ally.selection.influence import Influence
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class ByTask:
    """Classes are regions: a label settles its neighbourhood, and covering the uncertain ones works best. Numbers
    change gradually: what counts is how much a label tells about the others. A note in the query says which selection
    was used.

    Attributes:
        classes: for classification.
        numbers: for regression.
    """

    classes: Select = Herding(weighted=True, features=Inputs())
    numbers: Select = Influence(features=Inputs())
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.classes, self.numbers

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return readouts_of(*self.parts, *(getattr(part, "features", None) for part in self.parts))

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        select = self.classes if snapshot.task == "classification" else self.numbers
        found = select(snapshot, scores, n, streams, limits)
        return replace(found, notes=(*found.notes, f"the batch is chosen by {type(select).__name__}"))
