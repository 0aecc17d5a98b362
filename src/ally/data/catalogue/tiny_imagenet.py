"""Tiny ImageNet, from its zip or its unpacked folder; labels are WordNet ids."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import numpy as np

from ally.data.catalogue.archives import Tree
from ally.data.catalogue.dataset import Parts
from ally.data.catalogue.images import decode_images
from ally.data.catalogue.places import locate
from ally.data.paths import is_image
from ally.errors import DataError
from ally.types import AnyArray

ANNOTATIONS = "val/val_annotations.txt"
VALIDATION_NOTE = "the test labels of Tiny ImageNet are not public: its validation images are the test set here"


def read_tiny_imagenet(folder: Path) -> Parts:
    """100 000 training images as the pool, the 10 000 validation images as the test set; (n, 3, 64, 64)."""
    marker = "tiny-imagenet-200/" + ANNOTATIONS
    place = locate(folder, marker, "tiny-imagenet-200.zip", "tiny-imagenet-200/tiny-imagenet-200.zip")
    with Tree(folder / "tiny-imagenet-200" if place.name == "val_annotations.txt" else place) as tree:
        root = "" if tree.place.is_dir() else "tiny-imagenet-200/"
        classes = _annotations(tree, root)
        train = [name for name in tree.names if name.startswith(root + "train/") and is_image(name)]
        test = [name for name in tree.names if name.startswith(root + "val/images/") and is_image(name)]
        unknown = next((name for name in test if PurePosixPath(name).name not in classes), None)
        if unknown is not None:
            raise DataError(f"{unknown} is not in {ANNOTATIONS} of {tree.place}; fetch the data set again")
        names = _label(train, root)
        test_classes = np.asarray([classes[PurePosixPath(name).name] for name in test])
        return _parts(tree, train, names, test, test_classes, 64)


def read_tiny_imagenet_32(folder: Path) -> Parts:
    """A subset at 32×32: 50 training and 10 validation images of each of the 200 classes."""
    with Tree(locate(folder, "tiny-imagenet-32/tiny_imagenet32_subset.zip")) as tree:
        sides = [
            [name for name in tree.names if name.startswith(f"{side}/") and is_image(name)] for side in ("train", "val")
        ]
        parts = _parts(tree, sides[0], _label(sides[0], ""), sides[1], _label(sides[1], ""), 32)
    note = "a subset of Tiny ImageNet re-encoded at 32×32: not comparable with figures for Tiny ImageNet"
    return parts._replace(notes=(note, *parts.notes))


def _annotations(tree: Tree, root: str) -> dict[str, str]:
    """Class by file name, from lines ``val_0.JPEG<TAB>n03444034<TAB>…``."""
    found = {}
    for number, line in enumerate(tree.read(root + ANNOTATIONS).decode("utf-8", "replace").splitlines(), start=1):
        cells = line.split("\t")
        if len(cells) < 2:
            raise DataError(
                f"line {number} of {ANNOTATIONS} in {tree.place} is {line[:60]!r}, not 'file<TAB>class…'; fetch it "
                "again"
            )
        found[cells[0]] = cells[1]
    return found


def _label(names: list[str], root: str) -> AnyArray:
    """The folder below ``train/`` or ``val/``."""
    return np.asarray([name[len(root) :].split("/")[1] for name in names])


def _parts(
    tree: Tree, train: list[str], classes: AnyArray, test: list[str], test_classes: AnyArray, side: int
) -> Parts:
    if not train or not test:
        raise DataError(
            f"{tree.place} holds {len(train)} training and {len(test)} validation images; fetch the data set again"
        )
    pool, kept, notes = decode_images(tree, train, side)
    measured, test_kept, test_notes = decode_images(tree, test, side)
    return Parts(pool, classes[kept], measured, test_classes[test_kept], (VALIDATION_NOTE, *notes, *test_notes))
