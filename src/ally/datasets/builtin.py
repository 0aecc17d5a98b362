"""Small sets that ship with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ally.datasets.dataset import Parts
from ally.datasets.splits import holdout


def read_builtin(folder: Path, name: str) -> Parts:
    """Features (n, d) float64; one row in five (of every class), drawn once, is the test set. `folder` is not
    needed."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    regression = name == "diabetes"
    y = y.astype(np.float64 if regression else np.int64)
    pool, test = holdout(len(X), None if regression else y)
    return Parts(X[pool], y[pool], X[test], y[test])


def read_digit_images(folder: Path) -> Parts:
    """The rows of digits as images (n, 1, 8, 8) uint8, from 0 to 16."""
    parts = read_builtin(folder, "digits")
    pool, test = (X.reshape(-1, 1, 8, 8).astype(np.uint8) for X in (parts.pool, parts.test))
    return parts._replace(pool=pool, test=test)
