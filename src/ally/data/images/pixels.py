"""Pixels of an image file: decoded with Pillow, turned upright, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from ally.data.images.opening import open_header, open_picture
from ally.types import AnyArray

GRAY = ("1", "L", "LA")
AT_ONCE = 2**20
"""Pixels that are converted in one piece: a conversion takes up to nine times the memory of its result."""
ORIENTATION = 0x0112
MIRRORED, UPSIDE_DOWN, FLIPPED, TRANSPOSED, LEFT, TRANSVERSED, RIGHT = range(2, 9)
"""How the rows and columns of a picture lie, as its file says; 1 is upright."""


def read_square(source: Path | IO[bytes], name: str, side: int, near: int | None = None) -> AnyArray:
    """(1 or 3, side, side) uint8: the middle square, upright, scaled. Takes less memory than all pixels do."""
    with open_picture(source, name, near) as picture:
        return scale_square(picture, side)


def read_size(source: Path | IO[bytes], name: str) -> tuple[int, int]:
    """Height and width, upright."""
    with open_header(source, name) as picture:
        return _find_size(picture)


def scale_square(picture: Any, side: int) -> AnyArray:
    """(1 or 3, side, side) uint8 of a picture of Pillow."""
    orientation = find_orientation(picture)
    if picture.mode == "RGB" and picture.width * picture.height > AT_ONCE:
        return np.concatenate([squared(turn(_read_channel(picture, n), orientation), side) for n in range(3)])
    return squared(turn(convert_pixels(picture), orientation), side)


def _read_channel(picture: Any, number: int) -> AnyArray:
    strips = (np.asarray(strip.getchannel(number)) for strip in _cut_strips(picture))
    return _join(strips, picture.height)[None]


def _find_size(picture: Any) -> tuple[int, int]:
    turned = find_orientation(picture) >= TRANSPOSED
    return (picture.width, picture.height) if turned else (picture.height, picture.width)


def find_orientation(picture: Any) -> int:
    found = picture.getexif().get(ORIENTATION, 1)
    return found if found in range(MIRRORED, RIGHT + 1) else 1


def turn(pixels: AnyArray, orientation: int) -> AnyArray:
    """(c, h, w) upright: a view, which takes no memory."""
    if orientation in (TRANSPOSED, LEFT, TRANSVERSED, RIGHT):
        pixels = pixels.swapaxes(1, 2)
    if orientation in (MIRRORED, UPSIDE_DOWN, LEFT, TRANSVERSED):
        pixels = pixels[:, :, ::-1]
    if orientation in (UPSIDE_DOWN, FLIPPED, TRANSVERSED, RIGHT):
        pixels = pixels[:, ::-1]
    return pixels


def convert_pixels(picture: Any) -> AnyArray:
    """(1 or 3, h, w) uint8, as the file has them: a strip of rows at a time. Deep gray becomes bytes: 16 bits are
    divided by 257, values within a byte stay."""
    if is_deep(picture):
        tops = [np.asarray(strip, np.float64).max(initial=0.0) for strip in _cut_strips(picture)]
        scale = 1.0 if np.max(tops) <= 255 else 257.0
        parts = (
            np.clip(np.asarray(strip, np.float64) / scale, 0, 255).round().astype(np.uint8)
            for strip in _cut_strips(picture)
        )
    else:
        mode = "L" if picture.mode in GRAY else "RGB"
        parts = (np.asarray(strip if strip.mode == mode else strip.convert(mode)) for strip in _cut_strips(picture))
    return np.moveaxis(np.atleast_3d(_join(parts, picture.height)), 2, 0)


def _join(strips: Iterator[AnyArray], height: int) -> AnyArray:
    """One above the other: each goes to its place before the next is made."""
    first = next(strips)
    if len(first) == height:
        return first
    whole = np.empty((height, *first.shape[1:]), np.uint8)
    whole[: len(first)] = first
    top = len(first)
    for strip in strips:
        whole[top : top + len(strip)] = strip
        top += len(strip)
    return whole


def is_deep(picture: Any) -> bool:
    """Whether its numbers are larger than bytes."""
    return picture.mode in ("I", "F") or bool(picture.mode.startswith("I;16"))


def _cut_strips(picture: Any) -> Iterator[Any]:
    width, height = picture.size
    if width * height <= AT_ONCE:
        yield picture
        return
    step = max(1, AT_ONCE // width)
    for top in range(0, height, step):
        yield picture.crop((0, top, width, min(height, top + step)))


def squared(picture: AnyArray, side: int) -> AnyArray:
    """The middle square of (c, h, w), scaled to (c, side, side)."""
    from PIL import Image

    height, width = picture.shape[1:]
    edge = min(height, width)
    top, left = (height - edge) // 2, (width - edge) // 2
    middle = picture[:, top : top + edge, left : left + edge]
    return np.stack(
        [np.asarray(Image.fromarray(channel).resize((side, side), Image.Resampling.BICUBIC)) for channel in middle]
    )
