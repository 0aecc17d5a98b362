"""MNIST for the benchmarks, from the four original files in DATA/mnist."""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path

import numpy as np

from ally.experiment import Trial

FILES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


@lru_cache(maxsize=1)
def load(data_dir: Path, name: str) -> Trial:
    """60 000 training images as the pool, 10 000 test images."""
    images, labels, test_images, test_labels = (
        np.frombuffer(
            gzip.decompress((data_dir / "mnist" / f"{file}-ubyte.gz").read_bytes()),
            np.uint8,
            offset=16 if "images" in file else 8,
        )
        for file in FILES
    )
    return Trial(
        name, "classification", images.reshape(-1, 1, 28, 28), labels, test_images.reshape(-1, 1, 28, 28), test_labels
    )


def load_development(data_dir: Path, name: str) -> Trial:
    """The first 50 000 training images as the pool, the other 10 000 to measure on; the test images stay unseen."""
    whole = load(data_dir, name)
    return Trial(
        name,
        whole.task,
        whole.pool[:50_000],
        whole.pool_labels[:50_000],
        whole.pool[50_000:],
        whole.pool_labels[50_000:],
    )
