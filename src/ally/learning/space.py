"""Spaces for distances other than the learner's embeddings: the user's own vectors, or the inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ally.data import Source, Vectors, chunks
from ally.execution.memory import Scratch
from ally.learning.learner import Learner
from ally.types import IntArray


@dataclass(frozen=True, eq=False)
class Space:
    """Given vectors, or the points that a prepared learner makes of the samples themselves."""

    source: Source
    learner: Learner | None
    vectors: Vectors | None = None

    @property
    def width(self) -> int:
        """How many numbers are read per sample."""
        return math.prod(self.source.shape if self.vectors is None else self.vectors.shape)

    def read(self, rows: IntArray) -> torch.Tensor:
        """(n, d) float32."""
        if self.vectors is not None:
            return torch.from_numpy(self.vectors.read(rows))
        assert self.learner is not None
        return self.learner.points(self.source, rows)


def fixed_points(space: Space, rows: IntArray, scratch: Scratch, chunk_size: int | None) -> torch.Tensor:
    """(n, d) float32 for `rows` (at least one), read chunk by chunk."""
    found: torch.Tensor | None = None
    for chunk in chunks(len(rows), chunk_size, space.width):
        points = space.read(rows[chunk])
        if found is None:
            found = scratch.empty(len(rows), points.shape[1])
        found[chunk] = points
    assert found is not None
    return found
