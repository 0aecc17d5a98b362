from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from ally.features import ProductRows
from ally.learning.snapshot import Snapshot, View
from ally.types import BOTH_TASKS


@dataclass(frozen=True)
class Factors:
    """Rows of any factors, given with the view."""

    number: int
    tasks: ClassVar = BOTH_TASKS

    def __call__(self, view):
        return ProductRows((*(view.readouts[str(i)] for i in range(self.number - 1)), view.embeddings))


@pytest.fixture
def pool_of():
    """A representation and a snapshot of given candidates and labelled rows, each a tuple of factors; candidates are
    numbered from 0."""

    def side(factors):
        *others, last = factors
        return View(
            np.arange(len(last)),
            last,
            None,
            torch.zeros(len(last)),
            {str(i): factor for i, factor in enumerate(others)},
        )

    def make(candidates, labelled=None):
        labelled = [factor[:0] for factor in candidates] if labelled is None else labelled
        return Factors(len(candidates)), Snapshot("regression", side(candidates), side(labelled))

    return make
