"""A folder of images by class: the class of an image is the first folder it lies in, at any depth below."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import numpy as np

from ally.datasets.archives import Tree
from ally.datasets.dataset import Parts
from ally.datasets.images import decode, is_image
from ally.datasets.splits import holdout
from ally.errors import DataError

TEST_FOLDERS = ("test", "val", "valid", "validation")


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
