"""User data other than tables.

Arrays: an .npz with X and y, or two .npy files; nothing is unpickled. Image folders: the class of an image is the
first folder on its path, at any depth below.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from ally.data.arrays.array_files import map_array, open_arrays
from ally.data.catalogue.archives import Tree
from ally.data.catalogue.dataset import Kind, Parts
from ally.data.catalogue.images import decode, is_image
from ally.data.catalogue.splits import holdout
from ally.data.catalogue.targets import decide
from ally.errors import DataError, InputError
from ally.types import AnyArray, Task

TEST_FOLDERS = ("test", "val", "valid", "validation")


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
            "label", target, "; an .npz file has its features in X and its labels in y: leave label out"
        )
    with open_arrays(path) as arrays:
        if "X" not in arrays or "y" not in arrays:
            held = ", ".join(arrays.names[:20]) or "nothing"
            raise DataError(f"{path} holds {held}; save the features as X and the labels as y")
        return arrays.read("X"), arrays.read("y")


def _npy(path: Path, target: str | None) -> tuple[AnyArray, AnyArray]:
    if target is None:
        raise InputError(f"{path} holds the features; label= (--label) takes the .npy file with the labels")
    labels = Path(target)
    if not labels.is_file():
        labels = path.parent / target
    if not labels.is_file():
        raise InputError.about(
            "label", target, f"is not a file; give the path of a .npy file with one label per row of {path}"
        )
    return map_array(path), map_array(labels)


def read_folder(folder: Path) -> Parts:
    """Images and the names of their classes.

    If the folder holds exactly ``train`` and one of ``test``, ``val``, ``valid``, ``validation``, with the classes
    below, that is the split. Otherwise one image in five of every class, drawn once, is the test set.
    """
    with Tree(folder) as tree:
        names = [name for name in tree.names if is_image(name)]
        inside = [name for name in names if "/" in name]
        if not inside:
            raise DataError(
                f"{folder} holds {len(names)} images and none in a folder of a class; put them into one folder per "
                "class"
            )
        tops = {PurePosixPath(name).parts[0] for name in inside}
        test_top = next((top for top in TEST_FOLDERS if tops == {"train", top}), None)
        depth = 0 if test_top is None else 1
        inside = [name for name in inside if len(PurePosixPath(name).parts) > depth + 1]
        images, readable, notes = decode(tree, inside)
    kept = [name for name, good in zip(inside, readable, strict=True) if good]
    labels = np.asarray([PurePosixPath(name).parts[depth] for name in kept])
    stray = len(names) - len(inside)
    if stray:
        notes += (f"{stray} images lie in no folder of a class and are left out",)
    if len(np.unique(labels)) < 2:
        raise DataError(
            f"{folder} holds images of the class {labels[0]!r} only; at least two folders of classes are needed"
        )
    if test_top is None:
        pool, test = holdout(len(labels), labels)
    else:
        side = np.asarray([PurePosixPath(name).parts[0] == test_top for name in kept])
        pool, test = np.flatnonzero(~side).astype(np.int64), np.flatnonzero(side).astype(np.int64)
    paths = [[folder / kept[row] for row in side] for side in (pool, test)]
    return Parts(images[pool], labels[pool], images[test], labels[test], notes, (paths[0], paths[1]))
