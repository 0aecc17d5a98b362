"""Where distances between samples are measured, for learners that have no embedding of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse
import torch

from ally.data import Scaler, Source, chunks, fit_scaler
from ally.data.arrays.scaling import check_finite
from ally.errors import NonFiniteInput
from ally.types import AnyArray, IntArray

WIDEST = 512
"""Columns above which transformed samples are projected, since (n, d) points are kept for the whole pool."""
PROJECTED = 256


class Geometry(Protocol):
    def __call__(self, X: Any) -> torch.Tensor:
        """Samples as an estimator takes them → (n, d) float32."""
        ...


@dataclass(frozen=True, eq=False)
class Standardised:
    """The inputs, (x − mean) / scale; as they are without a scaler. NaN, where an estimator takes it, counts as the
    mean."""

    scaler: Scaler | None = None
    """Mean and scale of every column, (d,)."""

    def __call__(self, X: Any) -> torch.Tensor:
        values = np.asarray(dense(X), dtype=np.float64).reshape(len_of(X), -1)
        if self.scaler is not None:
            values = (values - self.scaler.mean) / self.scaler.scale
        return torch.from_numpy(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Transformed:
    """What the steps of a pipeline before its last make of samples; above `WIDEST` columns a sparse random projection
    of it, which keeps distances to within some percent."""

    steps: Any
    projection: AnyArray | None = None
    """(width, PROJECTED)."""

    @classmethod
    def of(cls, steps: Any, some: Any) -> Transformed:
        """From fitted steps and a few samples."""
        width = steps.transform(some).shape[1]
        return cls.projected(steps, width if width > WIDEST else None)

    @classmethod
    def projected(cls, steps: Any, width: int | None) -> Transformed:
        """From fitted steps that give `width` columns; None for no projection."""
        if width is None:
            return cls(steps)
        # Entries of one sign or the other, or none, one in √width: the variance of a projected distance stays small.
        share = float(np.sqrt(width))
        draws = np.random.default_rng(0).random((width, PROJECTED))
        signs = (draws < 0.5 / share).astype(np.float32) - (draws > 1 - 0.5 / share).astype(np.float32)
        return cls(steps, signs * np.float32(np.sqrt(share / PROJECTED)))

    def __call__(self, X: Any) -> torch.Tensor:
        found = self.steps.transform(X)
        if self.projection is not None:
            found = found @ self.projection
        return torch.from_numpy(np.ascontiguousarray(dense(found), dtype=np.float32))


@dataclass(frozen=True)
class Nowhere:
    """No geometry: samples have no coordinates."""

    def __call__(self, X: Any) -> torch.Tensor:
        return torch.zeros(len_of(X), 0)


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaf proximity: samples are near if trees put them into the same leaves.

    Every leaf of every tree has a random direction, and a sample is the sum of the directions of its leaves: the inner
    product of two samples is about the share of trees in which they share a leaf.
    """

    forest: Any
    before: Any = None
    """The steps before the forest, in a pipeline."""

    def __call__(self, X: Any) -> torch.Tensor:
        leaves = self.forest.apply(X if self.before is None else self.before.transform(X))
        leaves = np.asarray(leaves, dtype=np.int64).reshape(len(leaves), -1)
        total = np.zeros((len(leaves), PROJECTED), dtype=np.float32)
        for tree in range(leaves.shape[1]):
            found, place = np.unique(leaves[:, tree], return_inverse=True)
            signs = np.stack([_signs(tree, leaf) for leaf in found.tolist()])
            total += signs[place]
        return torch.from_numpy(total / np.float32(np.sqrt(leaves.shape[1] * PROJECTED)))


def _signs(tree: int, leaf: int) -> AnyArray:
    """(PROJECTED,) of ±1, fixed for each leaf."""
    bits = np.random.default_rng((tree, leaf)).integers(0, 2, PROJECTED, dtype=np.int8)
    return (2 * bits - 1).astype(np.float32)


def scaler_with_gaps(source: Source, rows: IntArray, chunk_size: int | None = None) -> Scaler:
    """Like `fit_scaler`, but NaN is allowed and ignored. Infinity is still refused."""
    try:
        return fit_scaler(source, rows, chunk_size)
    except NonFiniteInput:
        width = math.prod(source.shape)
        count, total, squares = (np.zeros(width) for _ in range(3))
        for chunk in chunks(len(rows), chunk_size, width):
            values = source.read(rows[chunk]).astype(np.float64)
            check_finite(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf), rows[chunk], source)
            flat = values.reshape(len(values), width)
            count += (~np.isnan(flat)).sum(0)
            total += np.nansum(flat, axis=0)
            squares += np.nansum(np.square(flat), axis=0)
        mean = total / np.maximum(count, 1)
        spread = np.sqrt(np.maximum(squares / np.maximum(count, 1) - np.square(mean), 0.0))
        return Scaler(
            mean.reshape(source.shape),
            np.where(spread > 1e-12 * np.maximum(1.0, np.abs(mean)), spread, 1.0).reshape(source.shape),
        )


def dense(X: Any) -> Any:
    """A sparse matrix as an array; anything else unchanged."""
    return X.toarray() if is_sparse(X) else X


def is_sparse(X: Any) -> bool:
    return bool(scipy.sparse.issparse(X))


def len_of(X: Any) -> int:
    """How many samples; sparse matrices have no length."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
