"""The images of a data set as arrays of one size."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ally.data.catalogue.archives import Tree
from ally.data.images.opening import UNREADABLE
from ally.data.images.pixels import read_square
from ally.errors import DataError
from ally.types import AnyArray, BoolArray

NAMED = 10
"""How many unreadable images a note names."""


class Decoded(NamedTuple):
    images: AnyArray
    """(n, 3, side, side) uint8 of the images that could be read."""
    readable: BoolArray
    """(m,) which of the given names could be read."""
    notes: tuple[str, ...]


def decode_images(tree: Tree, names: Sequence[str], side: int) -> Decoded:
    """All images. Unreadable ones are left out and noted; it is an error only if none is left."""
    images, readable, broken = [], np.ones(len(names), dtype=np.bool_), []
    for number, name in enumerate(names):
        try:
            pixels = read_square(io.BytesIO(tree.read(name)), name, side)
        except DataError as error:
            readable[number] = False
            broken.append(f"{name} ({str(error).removeprefix(f'{UNREADABLE} (').removesuffix(')')})")
            continue
        images.append(np.broadcast_to(pixels, (3, side, side)))
    if not images:
        raise DataError(
            f"none of the {len(names)} images in {tree.place} can be read ({', '.join(broken[:1])}); check the files"
        )
    more = f" and {len(broken) - NAMED} more" if len(broken) > NAMED else ""
    note = f"{len(broken)} of {len(names)} images cannot be read and are left out: {', '.join(broken[:NAMED])}{more}"
    return Decoded(np.stack(images), readable, (note,) if broken else ())
