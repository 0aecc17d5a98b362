"""The backbone's output, or the vectors that stand in for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ally.features.product import ProductRows
from ally.learning.snapshot import View
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class Embedding:
    """h = f_φ(x), (n, d), or the fixed vectors given as ``embeddings=``."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    label_free: ClassVar[bool] = True

    def __call__(self, view: View) -> ProductRows:
        return ProductRows((view.points,))
