"""The map of a pool: where its samples lie in two dimensions as the newest model sees them, and what it says of each.

Made in the worker, where the model is; kept as plain arrays, so that whoever shows it needs no torch.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ally.types import AnyArray, FloatArray

MOST = 20_000
"""Points of a map; of a larger pool a random part."""
NEAR = 3
"""Labelled samples named beside each one that is asked about."""


@dataclass(frozen=True)
class Chart:
    """`rows` (n,) of the store, places `x`, `y` (n,) between 0 and 1, `predicted` (n,) positions among `classes`, or
    values for numbers, and the `probability` (n,) of each, NaN where there is none."""

    rows: AnyArray
    x: FloatArray
    y: FloatArray
    predicted: FloatArray
    probability: FloatArray
    classes: tuple[Any, ...] = ()

    def to_bytes(self) -> bytes:
        out = io.BytesIO()
        np.savez_compressed(
            out,
            rows=self.rows.astype(np.int64),
            x=np.round(65535 * self.x).astype(np.uint16),
            y=np.round(65535 * self.y).astype(np.uint16),
            predicted=self.predicted.astype(np.float32),
            probability=self.probability.astype(np.float32),
            classes=np.frombuffer(json.dumps(list(self.classes)).encode(), dtype=np.uint8),
        )
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Chart:
        with np.load(io.BytesIO(data), allow_pickle=False) as kept:
            return cls(
                kept["rows"],
                kept["x"].astype(np.float64) / 65535,
                kept["y"].astype(np.float64) / 65535,
                kept["predicted"].astype(np.float64),
                kept["probability"].astype(np.float64),
                tuple(json.loads(kept["classes"].tobytes())),
            )


def flat(points: FloatArray) -> FloatArray:
    """(n, 2) between 0 and 1: the two directions in which (n, d) points spread most; signs are fixed, so that equal
    points give equal maps."""
    centred = points - points.mean(0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    main = directions[:, ::-1][:, :2]
    main = main * np.sign(main[np.abs(main).argmax(0), np.arange(main.shape[1])])
    places = centred @ main
    if places.shape[1] < 2:
        places = np.concatenate([places, np.zeros((len(places), 2 - places.shape[1]))], axis=1)
    low, high = np.quantile(places, [0.005, 0.995], axis=0)
    spread = np.where(high > low, high - low, 1.0)
    found: FloatArray = np.clip((places - low) / spread, 0.0, 1.0)
    return found


def nearest(points: FloatArray, others: FloatArray, names: Sequence[str]) -> list[list[str]]:
    """Of each of (m, d) points, the names of the `NEAR` nearest of (n, d) others, nearest first."""
    found = []
    for point in points:
        gaps = np.square(others - point).sum(1)
        found.append([names[place] for place in np.argsort(gaps, kind="stable")[:NEAR]])
    return found
