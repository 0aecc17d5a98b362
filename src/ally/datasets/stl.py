"""STL-10: ``train_X.bin`` and the like, images of 3×96×96 bytes, each channel column by column; labels 1 to 10."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ally.datasets.dataset import Parts
from ally.datasets.places import locate
from ally.datasets.splits import holdout
from ally.errors import DataError
from ally.types import AnyArray

FOLDER = "stl10_binary"
SIDE = 96
TEST = 2000
"""Test images of the paper, out of the 13 000 labelled ones; the other 11 000 are the pool."""


def read_stl10(folder: Path) -> Parts:
    """The labelled images, official training before official test, split anew by a fixed order: 2000 of 13 000, equal
    in every class."""
    sides = [read_side(folder, side) for side in ("train", "test")]
    images, labels = (np.concatenate(parts) for parts in zip(*sides, strict=True))
    pool, test = holdout(len(images), labels, TEST / 13_000)
    note = (
        f"STL-10's labelled images are split anew, as in the paper: {len(pool)} + {len(test)}, the same for every seed"
    )
    return Parts(images[pool], labels[pool], images[test], labels[test], (note,))


def read_side(folder: Path, side: str) -> tuple[AnyArray, AnyArray]:
    """Images (n, 3, 96, 96), upright, and labels (n,) of ``train`` or ``test``."""
    images, labels = locate(folder, f"{FOLDER}/{side}_X.bin"), locate(folder, f"{FOLDER}/{side}_y.bin")
    X, y = np.fromfile(images, np.uint8), np.fromfile(labels, np.uint8)
    if not len(X) or len(X) != len(y) * 3 * SIDE * SIDE:
        raise DataError(
            f"{images} has {len(X)} bytes for {len(y)} labels; {len(y) * 3 * SIDE * SIDE} are needed: fetch it again"
        )
    if not 1 <= y.min() <= y.max() <= 10:
        raise DataError(
            f"{labels} holds the label {y[(y < 1) | (y > 10)][0]}; STL-10 has the labels 1 to 10: fetch it again"
        )
    return np.ascontiguousarray(X.reshape(-1, 3, SIDE, SIDE).transpose(0, 1, 3, 2)), y.astype(np.int64)
