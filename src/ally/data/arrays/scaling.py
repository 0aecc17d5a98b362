"""Standardised features, from one pass over the pool in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ally.data.base import Source, blocks, chunks
from ally.errors import InputError, NonFiniteInput
from ally.types import AnyArray, IntArray

Scaling: TypeAlias = Literal["columns", "common"]
"""Whether every feature is divided by its own deviation, or all by one: then distances keep their meaning."""

LARGEST = 1e150
"""Above this the square of a float64 overflows."""


@dataclass(frozen=True)
class Scaler:
    """``(x - mean) / scale`` for any source of the same features."""

    mean: AnyArray
    scale: AnyArray

    def of(self, source: Source) -> Standardized:
        return Standardized(source, self.mean, self.scale)


@dataclass(frozen=True)
class Checked(Source):
    """A source as it is, whose values are checked to be finite as they are read."""

    source: Source

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    def __len__(self) -> int:
        return len(self.source)

    def read(self, rows: IntArray) -> AnyArray:
        values = self.source.read(rows)
        check_finite(values, rows, self.source)
        return values

    def column(self, number: int) -> str:
        return self.source.column(number)


@dataclass(frozen=True)
class Standardized(Checked):
    """A source seen through ``(x - mean) / scale``, checked, computed in float64 and returned as float32."""

    mean: AnyArray
    scale: AnyArray

    def read(self, rows: IntArray) -> AnyArray:
        standard: AnyArray = ((super().read(rows).astype(np.float64) - self.mean) / self.scale).astype(np.float32)
        return standard


def fit_scaler(source: Source, rows: IntArray, chunk_size: int | None = None, scaling: Scaling | None = None) -> Scaler:
    """Mean and scale of `rows`: per feature for tables, per channel for images ``(channels, height, width)``.

    The features of a sparse matrix are not centred and share one scale, their root mean square: divided by its own
    deviation, a word that few texts have would drown all others. Vectors (a source that says so by its attribute
    `vectors`) are centred and share one scale, so that distances keep their meaning; `scaling` asks for either. A
    constant feature keeps scale 1. Deviations are summed around the first row, so a large offset costs no precision.
    """
    origin, total, squares = source.moments(rows) or moments(source, rows, chunk_size)
    if source.sparse:
        common = float(np.sqrt(squares.mean() / len(rows)))
        return Scaler(origin, np.full_like(origin, common or 1.0))
    shift = total / len(rows)
    scale = np.sqrt(np.maximum(squares / len(rows) - np.square(shift), 0.0))
    noise = 1e-12 * np.maximum(np.abs(origin), np.sqrt(squares / len(rows)))
    if scaling == "common" or (scaling is None and source.vectors):
        # Where each channel of an image has one scale, the mean over them is over as many features each.
        common = float(np.sqrt(np.square(np.where(scale > noise, scale, 0.0)).mean()))
        return Scaler(origin + shift, np.full_like(origin, common or 1.0))
    return Scaler(origin + shift, np.where(scale > noise, scale, 1.0))


class Moments(NamedTuple):
    """Sums over samples, feature by feature or channel by channel: of x − origin, and of its square."""

    origin: AnyArray
    total: AnyArray
    squares: AnyArray


class BlockSums(NamedTuple):
    """The same sums over one block."""

    total: AnyArray
    squares: AnyArray


def moments(source: Source, rows: IntArray, chunk_size: int | None = None) -> Moments:
    """The moments of all `rows`, in one pass over them."""
    origin = origin_of(source, rows)

    def sums() -> Iterator[BlockSums]:
        for chunk in chunks(len(rows), chunk_size, math.prod(source.shape)):
            yield from block_sums(source, source.read(rows[chunk]), rows[chunk], origin)

    return sum_up(origin, sums(), len(rows))


def origin_of(source: Source, rows: IntArray) -> AnyArray:
    """Where deviations are measured from: the first row; 0 for a sparse source."""
    origin: AnyArray = source.read(rows[:1]).astype(np.float64).mean(axis=(0, *_axes(source)), keepdims=True)[0]
    return np.zeros_like(origin) if source.sparse else origin


def block_sums(source: Source, values: AnyArray, rows: IntArray, origin: AnyArray) -> list[BlockSums]:
    """The sums of each block in a chunk of values, which must be finite."""
    check_finite(values, rows, source)
    axes, found = _axes(source), []
    for block in blocks(len(values)):
        deviation = values[block].astype(np.float64) - origin
        total = deviation.mean(axis=axes, keepdims=True).sum(axis=0)
        found.append(BlockSums(total, np.square(deviation).mean(axis=axes, keepdims=True).sum(axis=0)))
    return found


def sum_up(origin: AnyArray, sums: Iterable[BlockSums], count: int) -> Moments:
    """Adds up the blocks in order, so that it does not matter where the sums were computed."""
    total, squares = np.zeros_like(origin), np.zeros_like(origin)
    for one in sums:
        total += one.total
        squares += one.squares
    return Moments(origin, total, squares)


def _axes(source: Source) -> tuple[int, ...]:
    """The axes of a batch of images to average over (height and width); none for other samples."""
    return tuple(range(2, len(source.shape) + 1)) if len(source.shape) == 3 else ()


def check_finite(values: AnyArray, rows: IntArray, source: Source) -> None:
    """Raises with the row, the feature and the value met if anything is NaN, infinite or too large to square."""
    if values.dtype.kind != "f" or (np.isfinite(values).all() and float(np.abs(values).max(initial=0.0)) <= LARGEST):
        return
    bad = np.argwhere(~(np.abs(values.astype(np.float64)) <= LARGEST))[0]
    value = float(values[tuple(bad)])
    where = (
        f"X holds {value} at row {rows[bad[0]]}, feature {source.column(int(bad[1]))}"
        if values.ndim == 2
        else (f"X holds {value} in sample {rows[bad[0]]}")
    )
    if np.isfinite(value):
        raise InputError(f"{where}: too large to square in float64; rescale the feature to below {LARGEST:g}").at(
            rows[bad[0]]
        )
    kind = "NaN" if np.isnan(value) else "infinity"
    raise NonFiniteInput(
        f"{where}: {kind} cannot be used; impute it, drop the row, or leave the row out through `candidates`"
    ).at(rows[bad[0]])
