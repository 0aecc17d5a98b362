"""The samples themselves, in a space that training does not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ally.features.product import ProductRows
from ally.learning.snapshot import View
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class Inputs:
    """x as the learner sees it, (n, d), or the fixed vectors given as ``embeddings=``.

    What a network makes of few labels is a poor guide to what is alike. Samples of more than `pool_learner.WIDEST`
    numbers, such as photos, are still compared by a network's embedding: distances between pixels say little.
    """

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    label_free: ClassVar[bool] = True
    compares_inputs: ClassVar[bool] = True

    def __call__(self, view: View) -> ProductRows:
        return ProductRows((view.points,))
