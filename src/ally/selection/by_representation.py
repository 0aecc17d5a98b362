"""One selection for classification in an embedding that the network relearns every round, another for everything
else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from ally.learning.readouts import Readout, readouts_of
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Select, Selection
from ally.selection.herding import Herding
from ally.selection.influence import Influence
from ally.types import Task


@dataclass(frozen=True)
class ByRepresentation:
    """Where distances are fixed, what a sample tells about its neighbours stays true in later rounds. Where a network
    learns them together with the classes, it is true for this round only, and covering the uncertain samples works
    better. A note in the query says which selection was used.

    Attributes:
        usual: for regression, and for classification where distances are fixed: an encoder's vectors, vectors given as
            ``embeddings=``, the inputs of trees and linear models.
        learned: for classification in a network's own embedding.
    """

    usual: Select = Influence()
    learned: Select = Herding(weighted=True)
    reads: ClassVar[bool] = True

    @property
    def tasks(self) -> frozenset[Task]:
        """The tasks that both selections and their representations support."""
        return frozenset.intersection(*(part.tasks for part in self._parts))

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return readouts_of(*self._parts)

    @property
    def _parts(self) -> tuple[Any, ...]:
        return tuple(part for one in (self.usual, self.learned) for part in (one, getattr(one, "features", one)))

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        anew = snapshot.learned and snapshot.task == "classification"
        select = self.learned if anew else self.usual
        reason = ", because the network relearns its embedding with every batch" if anew else ""
        found = select(snapshot, scores, n, streams, limits)
        return replace(found, notes=(*found.notes, f"the batch is chosen by {type(select).__name__}{reason}"))
