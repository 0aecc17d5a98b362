"""One constraint for classification, another for regression: the default's score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ally.constrained.violations import AbsoluteError
from ally.errors import InputError
from ally.learning.readouts import Readout, readouts_of
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.scoring.constraint_dual import ConstraintDual
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class DualByTask:
    """The dual of a margin constraint under the predicted label, 1 − (p₁ − p₂), for classes; of a constraint on the
    absolute error, with the cap at three median spreads, for numbers.

    Attributes:
        classes: for classification.
        numbers: for regression.
    """

    classes: ConstraintDual = ConstraintDual()
    numbers: ConstraintDual = ConstraintDual(AbsoluteError(), slope=1 / 3)
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        wanted: tuple[tuple[str, ConstraintDual, Task], ...] = (
            ("classes", self.classes, "classification"),
            ("numbers", self.numbers, "regression"),
        )
        for name, score, task in wanted:
            if not isinstance(score, ConstraintDual) or task not in score.tasks:
                raise InputError.about(name, score, f"; pass a ConstraintDual with a constraint for {task}")

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return readouts_of(self.classes, self.numbers)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        score = self.classes if snapshot.task == "classification" else self.numbers
        return score(snapshot, streams)
