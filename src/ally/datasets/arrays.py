"""Arrays of the user: an .npz with X and y, or two .npy files. Nothing is unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Literal

import numpy as np

from ally.datasets.dataset import Kind, Parts
from ally.datasets.splits import holdout
from ally.datasets.targets import decide
from ally.errors import DataError, InputError
from ally.types import AnyArray, Task


def read_arrays(path: Path, target: str | None, wanted: Task | Literal["auto"] = "auto") -> tuple[Task, Kind, Parts]:
    """Samples (n, d) or images (n, c, h, w), and one label each; one in five, drawn once, is the test set."""
    import pandas as pd

    X, y = _npz(path, target) if path.suffix.lower() == ".npz" else _npy(path, target)
    if X.ndim < 2 or X.dtype.kind not in "fiub":
        raise DataError(
            f"X of {path} has shape {X.shape} and dtype {X.dtype}; numbers of shape (n, features) or (n, c, h, w) are "
            "needed"
        )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (len(X),) or len(X) < 2:
        raise DataError(
            f"the labels for {path} have shape {y.shape} and X {X.shape}; one label per sample is needed, two at least"
        )
    task, labels, note = decide(pd.Series(y.astype(str) if y.dtype.kind == "S" else y), wanted)
    pool, test = holdout(len(X), labels if task == "classification" else None)
    if not len(test):
        raise DataError(f"{path} has {len(X)} samples, too few for a test set of one in five; add some")
    return task, "images" if X.ndim == 4 else "table", Parts(X[pool], labels[pool], X[test], labels[test], (note,))


def _npz(path: Path, target: str | None) -> tuple[AnyArray, AnyArray]:
    if target not in (None, "y"):
        raise InputError.about(
            "target", target, "; an .npz file has its features in X and its labels in y: leave target out"
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if "X" not in arrays or "y" not in arrays:
                raise DataError(
                    f"{path} holds {', '.join(arrays) or 'nothing'}; save the features as X and the labels as y"
                )
            return arrays["X"], arrays["y"]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} cannot be read as .npz ({error}); save it again with numpy, without object arrays"
        ) from error


def _npy(path: Path, target: str | None) -> tuple[AnyArray, AnyArray]:
    if target is None:
        raise InputError(f"{path} holds the features; give the path of a second .npy file with the labels as target")
    labels = Path(target)
    if not labels.is_file():
        labels = path.parent / target
    if not labels.is_file():
        raise InputError.about(
            "target", target, f"is not a file; give the path of a .npy file with one label per row of {path}"
        )
    try:
        return np.load(path, allow_pickle=False), np.load(labels, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(
            f"{path} or {labels} cannot be read as .npy ({error}); save it again with numpy, without object arrays"
        ) from error
