"""SVHN, cropped digits: Matlab files with X (32, 32, 3, n) and y (n, 1), where the digit 0 is written as 10."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ally.datasets.dataset import Parts
from ally.datasets.places import locate
from ally.errors import DataError
from ally.types import AnyArray


def read_svhn(folder: Path) -> Parts:
    """73 257 training images as the pool, 26 032 test images; (n, 3, 32, 32). The extra images are not used."""
    sides = [read_digits(locate(folder, f"svhn/{side}_32x32.mat")) for side in ("train", "test")]
    return Parts(*sides[0], *sides[1])


def read_digits(path: Path) -> tuple[AnyArray, AnyArray]:
    """Images (n, 3, 32, 32) and digits 0 to 9."""
    from scipy.io import loadmat

    try:
        content = loadmat(str(path), variable_names=["X", "y"])
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error
    except Exception as error:  # the parser raises many kinds on damaged files
        raise DataError(f"{path} is not a Matlab file of SVHN ({error}); fetch it again") from error
    X, y = content.get("X"), content.get("y")
    if (
        X is None
        or y is None
        or X.dtype != np.uint8
        or X.shape[:3] != (32, 32, 3)
        or X.ndim != 4
        or y.size != X.shape[3]
    ):
        met = ", ".join(
            f"{name} {value.shape} {value.dtype}" for name, value in (("X", X), ("y", y)) if value is not None
        )
        raise DataError(
            f"{path} holds {met or 'neither X nor y'}; SVHN has X (32, 32, 3, n) of bytes and y (n, 1): fetch it again"
        )
    digits = y.reshape(-1).astype(np.int64)
    if digits.size and not 1 <= digits.min() <= digits.max() <= 10:
        raise DataError(
            f"{path} holds the label {digits[(digits < 1) | (digits > 10)][0]}; SVHN has the labels 1 to 10: fetch it "
            "again"
        )
    return np.ascontiguousarray(X.transpose(3, 2, 0, 1)), digits % 10
