"""CIFAR-10: binary batches (a label byte and 3072 channel-major bytes a row) or Python batches (read by
`batches.py`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ally.datasets.batches import read_python_batch
from ally.datasets.dataset import Parts
from ally.errors import DataError
from ally.types import AnyArray

SHAPE = (3, 32, 32)
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
BINARY, PYTHON = "cifar-10-batches-bin", "cifar-10-batches-py"


def read_cifar10(folder: Path) -> Parts:
    """The training batches that are there as the pool, the test batch; (n, 3, 32, 32). Says which batches are
    missing."""
    here = {name: path for name in (*TRAIN, "test_batch") if (path := _place(folder, name)) is not None}
    train = [name for name in TRAIN if name in here]
    if "test_batch" not in here or not train:
        raise DataError(
            f"{folder / BINARY} needs test_batch.bin and a training batch; run: ally datasets fetch cifar10"
        )
    images, labels = zip(*(read_batch(here[name]) for name in train), strict=True)
    pool, pool_labels = np.concatenate(images), np.concatenate(labels)
    notes: list[str] = []
    if len(train) < len(TRAIN):
        gone = ", ".join(name for name in TRAIN if name not in here)
        notes.append(
            f"only {len(train)} of the 5 training batches of CIFAR-10 are here (missing: {gone}): {len(pool)} of "
            "50000 images"
        )
    return Parts(pool, pool_labels, *read_batch(here["test_batch"]), tuple(notes))


def _place(folder: Path, name: str) -> Path | None:
    places = (folder / BINARY / f"{name}.bin", folder / PYTHON / name)
    return next((path for path in places if path.is_file()), None)


def read_batch(path: Path) -> tuple[AnyArray, AnyArray]:
    """Images (n, 3, 32, 32) and labels (n,) of one batch of either kind."""
    if path.suffix == ".bin":
        raw = np.fromfile(path, np.uint8)
        if not len(raw) or len(raw) % 3073:
            raise DataError(
                f"{path} has {len(raw)} bytes, which is not a multiple of 3073 (a label and 3×32×32 pixels); fetch it "
                "again"
            )
        rows = raw.reshape(-1, 3073)
        labels, pixels = rows[:, 0].astype(np.int64), rows[:, 1:]
    else:
        pixels, labels = read_python_batch(path)
        if pixels.shape != (len(labels), 3072):
            raise DataError(f"{path} has pixels of shape {pixels.shape} and {len(labels)} labels; fetch it again")
    if len(labels) and not 0 <= labels.min() <= labels.max() <= 9:
        raise DataError(
            f"{path} holds the label {labels[(labels < 0) | (labels > 9)][0]}; CIFAR-10 has the labels 0 to 9: fetch "
            "it again"
        )
    return np.ascontiguousarray(pixels).reshape(-1, *SHAPE), labels
