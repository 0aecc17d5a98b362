"""The map of a pool: the newest model's two-dimensional view of its samples, with its predictions.

Computed in the worker, which has the model, and stored as plain arrays, so that showing it needs no torch.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ally.errors import StoreDamaged
from ally.json_form import find_misfit
from ally.types import AnyArray, FloatArray

MOST_BYTES = 2**26
"""Of the parts of a map: it holds at most `MOST` points."""
MOST = 20_000
"""The most points on a map; a random sample of a larger pool."""
DIRECTIONS = 16
"""In which distances between samples are kept."""


@dataclass(frozen=True)
class Chart:
    """`rows` (n,) of the store, places `x`, `y` (n,) between 0 and 1, `predicted` (n,) positions among `classes`, or
    values for numbers, and the `probability` (n,) of each, NaN where there is none; `points` (n, k) are for distances
    between samples as the model sees them."""

    rows: AnyArray
    x: FloatArray
    y: FloatArray
    predicted: FloatArray
    probability: FloatArray
    points: FloatArray
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
            points=self.points.astype(np.float16),
            classes=np.frombuffer(json.dumps(list(self.classes)).encode(), dtype=np.uint8),
        )
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Chart:
        """The map that `to_bytes` wrote. Raises `StoreDamaged` if it is anything else."""
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
            if size > MOST_BYTES:
                raise ValueError(f"it unpacks to {size} bytes")
            with np.load(io.BytesIO(data), allow_pickle=False) as kept:
                x, y = (kept[name].astype(np.float64) / 65535 for name in "xy")
                chart = cls(
                    kept["rows"].astype(np.int64, casting="safe"),
                    x,
                    y,
                    kept["predicted"].astype(np.float64),
                    kept["probability"].astype(np.float64),
                    kept["points"].astype(np.float64) if "points" in kept else np.column_stack([x, y]),
                    tuple(json.loads(kept["classes"].tobytes())),
                )
            chart._check()
            return chart
        except (ValueError, KeyError, TypeError, OSError, RecursionError, zipfile.BadZipFile, zlib.error) as error:
            raise StoreDamaged(f"the map of the newest model is damaged ({error}); run `ally retrain`") from error

    def _check(self) -> None:
        """One place, prediction and probability for each row, and classes that predictions name."""
        n = len(self.rows) if self.rows.ndim == 1 else -1
        if n > MOST or any(values.shape != (n,) for values in (self.x, self.y, self.predicted, self.probability)):
            raise ValueError("its parts do not fit")
        if self.points.ndim != 2 or self.points.shape[0] != n or self.points.shape[1] > DIRECTIONS:
            raise ValueError("its points do not fit")
        misfit = find_misfit(list(self.classes), list[str | bool | int | float], "its classes")
        if misfit is not None:
            raise ValueError(misfit)
        sure = self.predicted[~np.isnan(self.predicted)]
        if self.classes and len(sure) and not (sure.min() >= 0 and sure.max() < len(self.classes)):
            raise ValueError("it predicts a class that there is not")


def main_directions(points: FloatArray, k: int = DIRECTIONS) -> FloatArray:
    """(n, k): the directions in which (n, d) points spread most, the widest first, or all d if they are fewer; signs
    are fixed, so that equal points give equal maps."""
    centred = points - points.mean(0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    main = directions[:, ::-1][:, :k]
    found: FloatArray = centred @ (main * np.sign(main[np.abs(main).argmax(0), np.arange(main.shape[1])]))
    return found


def flat(places: FloatArray) -> FloatArray:
    """(n, 2) between 0 and 1: the first two of (n, k) main directions."""
    places = places[:, :2]
    if places.shape[1] < 2:
        places = np.concatenate([places, np.zeros((len(places), 2 - places.shape[1]))], axis=1)
    low, high = np.quantile(places, [0.005, 0.995], axis=0)
    spread = np.where(high > low, high - low, 1.0)
    found: FloatArray = np.clip((places - low) / spread, 0.0, 1.0)
    return found


def scaled(points: FloatArray) -> FloatArray:
    """Between -1 and 1, as half precision holds them."""
    return points / (np.abs(points).max() or 1.0)
