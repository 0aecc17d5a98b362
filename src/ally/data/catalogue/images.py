"""Images as arrays: decoded with Pillow, turned upright, scaled to one size."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ally.data.catalogue.archives import Tree
from ally.data.images.opening import UNREADABLE
from ally.data.images.pixels import read_small, squared
from ally.data.paths import is_image
from ally.errors import DataError
from ally.types import AnyArray, BoolArray

__all__ = ["Decoded", "decode", "is_image"]

LARGEST_KEPT = 96
"""Images that all have the same size are kept as they are, up to this side."""
SIDE = 64
"""All others are cropped to their middle square and scaled to this side."""
NAMED = 10
"""How many unreadable images a note names."""


class Decoded(NamedTuple):
    images: AnyArray
    """(n, c, h, w) uint8 of the images that could be read; c is 1 if all are gray, else 3."""
    readable: BoolArray
    """(m,) which of the given names could be read."""
    notes: tuple[str, ...]


def decode(tree: Tree, names: Sequence[str]) -> Decoded:
    """All images in one size and number of channels. Unreadable images are left out and noted; it is an error only if
    none is left."""
    tried = [_attempt(tree, name) for name in names]
    readable = np.asarray([not isinstance(one, str) for one in tried], dtype=np.bool_)
    pictures = [one for one in tried if not isinstance(one, str)]
    bad = [f"{name} ({one})" for name, one in zip(names, tried, strict=True) if isinstance(one, str)]
    if not pictures:
        raise DataError(
            f"none of the {len(names)} images in {tree.place} can be read ({', '.join(bad[:1])}); check the files"
        )
    notes = []
    if bad:
        more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
        notes.append(
            f"{len(bad)} of {len(names)} images cannot be read and are left out: {', '.join(bad[:NAMED])}{more}"
        )
    sizes = {picture.size for picture in pictures}
    pixels = [picture.pixels for picture in pictures]
    if len(sizes) > 1 or max(next(iter(sizes))) > LARGEST_KEPT:
        pixels = [
            picture.pixels if max(picture.size) > LARGEST_KEPT else squared(picture.pixels, SIDE)
            for picture in pictures
        ]
        met = "many sizes" if len(sizes) > 1 else "{1}×{0}".format(*next(iter(sizes)))
        notes.append(f"the images have {met}; each is cropped to its middle square and scaled to {SIDE}×{SIDE}")
    channels = max(map(len, pixels))
    images = np.stack([np.broadcast_to(picture, (channels, *picture.shape[1:])) for picture in pixels])
    return Decoded(images, readable, tuple(notes))


class _Picture(NamedTuple):
    pixels: AnyArray
    """(1 or 3, h, w); a large image is scaled immediately, so that a folder of photographs does not fill the memory."""
    size: tuple[int, ...]
    """Height and width before that."""


def _attempt(tree: Tree, name: str) -> _Picture | str:
    """The image, or why there is none."""
    try:
        pixels, size = read_small(io.BytesIO(tree.read(name)), name, LARGEST_KEPT, SIDE)
    except DataError as error:
        return str(error).removeprefix(f"{UNREADABLE} (").removesuffix(")")
    return _Picture(np.ascontiguousarray(pixels), size)
