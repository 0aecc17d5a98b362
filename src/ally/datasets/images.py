"""Images as arrays: decoded with Pillow, turned upright, brought to one size."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ally.datasets.archives import Tree
from ally.errors import DataError, MissingPart
from ally.types import AnyArray, BoolArray

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
LARGEST_KEPT = 96
"""Images that share one size are kept as they are up to this side."""
SIDE = 64
"""All others are cropped to their middle square and scaled to this side."""
GRAY = ("1", "L", "LA", "I", "I;16", "F")
NAMED = 10
"""How many unreadable images a note names."""


class Decoded(NamedTuple):
    images: AnyArray
    """(n, c, h, w) uint8 of the images that could be read; c is 1 if all are gray, else 3."""
    readable: BoolArray
    """(m,) which of the given names could be read."""
    notes: tuple[str, ...]


def is_image(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def decode(tree: Tree, names: Sequence[str]) -> Decoded:
    """All images in one size and number of channels. An unreadable one is left out and noted, never fatal unless none is left."""
    tried = [_attempt(tree, name) for name in names]
    readable = np.asarray([not isinstance(one, str) for one in tried], dtype=np.bool_)
    pictures = [one for one in tried if not isinstance(one, str)]
    bad = [f"{name} ({one})" for name, one in zip(names, tried, strict=True) if isinstance(one, str)]
    if not pictures:
        raise DataError(f"none of the {len(names)} images in {tree.place} can be read ({', '.join(bad[:1])}); check the files")
    notes = []
    if bad:
        more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
        notes.append(f"{len(bad)} of {len(names)} images cannot be read and are left out: {', '.join(bad[:NAMED])}{more}")
    sizes = {picture.size for picture in pictures}
    pixels = [picture.pixels for picture in pictures]
    if len(sizes) > 1 or max(next(iter(sizes))) > LARGEST_KEPT:
        pixels = [picture.pixels if max(picture.size) > LARGEST_KEPT else _squared(picture.pixels) for picture in pictures]
        met = "many sizes" if len(sizes) > 1 else "{1}×{0}".format(*next(iter(sizes)))
        notes.append(f"the images have {met}; each is cropped to its middle square and scaled to {SIDE}×{SIDE}")
    channels = max(map(len, pixels))
    images = np.stack([np.broadcast_to(picture, (channels, *picture.shape[1:])) for picture in pixels])
    return Decoded(images, readable, tuple(notes))


class _Picture(NamedTuple):
    pixels: AnyArray
    """(1 or 3, h, w); a large one is scaled at once, so that a folder of photographs does not fill the memory."""
    size: tuple[int, ...]
    """Height and width before that."""


def _attempt(tree: Tree, name: str) -> _Picture | str:
    """The image, or why there is none."""
    bomb = _pillow().DecompressionBombError
    try:
        pixels = _open(tree.read(name))
    except (DataError, OSError, ValueError, SyntaxError, OverflowError, EOFError, Warning, bomb) as error:
        return (str(error) or type(error).__name__).splitlines()[0][:100]
    size = pixels.shape[1:]
    return _Picture(_squared(pixels) if max(size) > LARGEST_KEPT else pixels, size)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPart("reading images needs Pillow: pip install Pillow") from error
    return Image


def _open(data: bytes) -> AnyArray:
    """(1 or 3, h, w) uint8, upright. Above Pillow's limit of pixels an image counts as unreadable."""
    Image = _pillow()
    from PIL import ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(data)) as picture:
            upright = ImageOps.exif_transpose(picture)
            if upright.mode in ("I", "I;16", "F"):
                return _scaled_gray(np.asarray(upright, dtype=np.float64))
            if upright.mode in GRAY:
                return np.asarray(upright.convert("L"))[None]
            return np.ascontiguousarray(np.asarray(upright.convert("RGB")).transpose(2, 0, 1))


def _scaled_gray(values: AnyArray) -> AnyArray:
    """Deep gray as bytes: 16 bits are divided by 257, values within a byte stay."""
    top = float(values.max(initial=0.0))
    return np.clip(values / (1.0 if top <= 255 else 257.0), 0, 255).round().astype(np.uint8)[None]


def _squared(picture: AnyArray) -> AnyArray:
    Image = _pillow()
    height, width = picture.shape[1:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    middle = picture[:, top : top + side, left : left + side]
    return np.stack([np.asarray(Image.fromarray(channel).resize((SIDE, SIDE), Image.Resampling.BICUBIC)) for channel in middle])
