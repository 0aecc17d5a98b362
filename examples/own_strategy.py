"""A strategy of your own in twenty lines: it inherits the trainer, every selection, the checks and the command line's
honesty.

A score is a frozen dataclass that turns a snapshot of the round into one number per candidate. Here: how far a
candidate's embedding lies from the mean embedding of the labelled samples, so that the unfamiliar comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sklearn.datasets import load_digits

import ally
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.scoring import Scored
from ally.selection import ClusterTop
from ally.testing import check_strategy
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class Unfamiliar:
    """‖h − mean of the labelled h‖."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        home = snapshot.labelled.embeddings.double().mean(0)
        return Scored((snapshot.candidates.embeddings.double() - home).norm(dim=1))


unfamiliar = ally.Strategy(score=Unfamiliar(), select=ClusterTop(shortlist=10), objective="pdcl")

if __name__ == "__main__":
    check_strategy(unfamiliar)
    X, truth = load_digits(return_X_y=True)
    y = [int(label) if row < 100 else None for row, label in enumerate(truth)]
    found = ally.query(X, y, n=5, strategy=unfamiliar, model="mlp", random_state=0)
    print(found.why[["score", "predicted", "probability"]].round(2))
