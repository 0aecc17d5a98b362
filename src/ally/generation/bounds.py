"""The range a generated sample must stay in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ally.data import as_source, chunks
from ally.errors import InputError, NonFiniteInput
from ally.types import FloatArray

Bounds = tuple[FloatArray, FloatArray]
"""Lowest and highest value of every feature, each of the shape of a sample."""


def bounds_of(X: Any) -> Bounds:
    """The range of data: of each column of a table; 0 to 255 for images of bytes, else of all pixels together."""
    source = as_source(X)
    image = len(source.shape) > 1
    if image and getattr(X, "dtype", None) in (np.uint8, torch.uint8):
        return np.full(source.shape, 0.0), np.full(source.shape, 255.0)
    low, high = np.full(source.shape, np.inf), np.full(source.shape, -np.inf)
    for chunk in chunks(len(source), None, math.prod(source.shape)):
        values = source.read(np.arange(chunk.start, chunk.stop))
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
    if image:
        low, high = np.full_like(low, low.min()), np.full_like(high, high.max())
    return check_bounds((low, high), source.shape)


def check_bounds(bounds: Any, shape: tuple[int, ...]) -> Bounds:
    """A pair of numbers or arrays, spread over the features of a sample."""
    try:
        low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), shape) for side in bounds)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"bounds do not fit samples of shape {shape} ({error}); pass (low, high), numbers or arrays of that shape"
        ) from error
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise NonFiniteInput("bounds hold NaN or infinity; pass the finite range of the data")
    if (low > high).any():
        place = tuple(int(k) for k in np.argwhere(low > high)[0])
        raise InputError(f"bounds are {low[place]:g} to {high[place]:g} at feature {place}; the low one comes first")
    return low, high
