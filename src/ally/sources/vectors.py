"""Fixed vectors, one for each sample of a pool, to measure distances in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ally.errors import InputError, NonFiniteInput
from ally.sources.arrays import as_source
from ally.sources.base import Source
from ally.types import IntArray

LARGEST = 1e15
"""Above this a sum of squares may overflow in single precision."""


@dataclass(frozen=True)
class Vectors:
    """Vectors by row of the pool, read in single precision and checked as they are read. Nothing is copied whole."""

    source: Source

    @property
    def shape(self) -> tuple[int, ...]:
        """(d,)"""
        return self.source.shape

    def read(self, rows: IntArray) -> NDArray[np.float32]:
        """(len(rows), d)."""
        values = self.source.read(rows)
        bad = ~(np.abs(values) <= LARGEST)
        if bad.any():
            row, number = np.argwhere(bad)[0]
            value = values[row, number]
            where = f"embeddings= holds {value} at row {rows[row]}, column {self.source.column(int(number))}"
            if np.isfinite(value):
                raise InputError(f"{where}: too large to square in single precision; rescale to below {LARGEST:g}")
            raise NonFiniteInput(f"{where}; give finite vectors, or leave the row out through `candidates`")
        return values.astype(np.float32)


def open_vectors(embeddings: Any, samples: int) -> Vectors:
    """What a user passed as ``embeddings=`` for a pool of so many samples: anything that `as_source` takes, one vector
    a row."""
    source = as_source(embeddings, "embeddings=")
    if len(source) != samples:
        raise InputError(
            f"embeddings= has {len(source)} rows and the pool {samples} samples; give one vector for each, in the "
            "same order"
        )
    if len(source.shape) != 1:
        shape = (len(source), *source.shape)
        raise InputError(f"embeddings= has shape {shape}; give one vector per sample: reshape to ({samples}, d)")
    return Vectors(source)
