"""Where the graph learner measures distances: standardised columns, or the main directions of the samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ally.constrained.convex import Design
from ally.data import Scaler, Source, fit_scaler
from ally.data.arrays.scaling import Scaling
from ally.learning.fitted_network import seen_through
from ally.types import AnyArray, IntArray

AXES, SAMPLE = 32, 1024
"""Samples of more than `AXES` numbers of one scale are compared along the `AXES` directions in which `SAMPLE` of them
vary most. Labels of encoded texts and photos spread better there than in the full vectors."""
COLUMNS = 128
"""Tables of more columns are compared along their main directions only."""
LARGEST = 1e6
"""New samples farther out, in deviations, are as far as this."""


@dataclass(frozen=True, eq=False)
class GraphSpace:
    """Standardised samples, along `axes` (d, q) and scaled to length 1 if there are any."""

    scaler: Scaler = field(repr=False)
    axes: AnyArray | None = field(repr=False)

    def read(self, source: Source, rows: IntArray, shape: tuple[int, ...] | None = None) -> AnyArray:
        """(m, q) float32; `shape` is what a sample must have."""
        values = seen_through(self.scaler, source, shape).read(rows).reshape(len(rows), math.prod(source.shape))
        points = np.clip(np.ascontiguousarray(values, dtype=np.float32), -LARGEST, LARGEST)
        if self.axes is None:
            return points
        along = points.astype(np.float64) @ self.axes
        lengths = np.sqrt(np.square(along).sum(axis=1, keepdims=True))
        found: AnyArray = (along / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
        return found


def list_scalings(source: Source) -> tuple[Scaling, ...]:
    """The ways to scale such samples that are worth comparing, the usual one first: few columns tend to be of many
    kinds, and many of one."""
    width = math.prod(source.shape)
    one_kind = len(source.shape) != 1 or source.vectors or source.sparse
    if one_kind or width > COLUMNS:
        return ("common",)
    return ("columns", "common") if width <= AXES else ("common", "columns")


def find_space(source: Source, rows: IntArray, scaling: Scaling, chunk_size: int | None = None) -> GraphSpace:
    """The space of the samples `rows`."""
    scaler = fit_scaler(source, rows, chunk_size, scaling)
    width = math.prod(source.shape)
    if width <= AXES or scaling == "columns":
        return GraphSpace(scaler, None)
    some = rows[np.unique(np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64))]
    sample = scaler.of(source).read(some).reshape(len(some), width)
    return GraphSpace(scaler, np.asarray(Design(sample).axes(AXES), dtype=np.float64))
