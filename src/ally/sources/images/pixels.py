"""Pixels of an image file: decoded with Pillow, turned upright."""

from __future__ import annotations

import struct
import warnings
import zlib
from functools import cache
from typing import IO, Any

import numpy as np

from ally.errors import DataError, MissingPart
from ally.types import AnyArray

GRAY = ("1", "L", "LA", "I", "I;16", "F")


def pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPart("reading images needs Pillow: pip install Pillow") from error
    _register_heif()
    return Image


@cache
def _register_heif() -> bool:
    """Whether Pillow reads .heic files from now on: by the extra part pillow-heif."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def ensure_readable_kind(name: str) -> None:
    """Raises `DataError` if pictures of this ending need a part that is not installed."""
    if name.lower().endswith((".heic", ".heif")) and not _register_heif():
        raise DataError("reading .heic needs pillow-heif: pip install 'ally-learn[heif]'")
    if name.lower().endswith(".avif"):
        from PIL import features

        if not features.check("avif") and not _register_heif():
            raise DataError("this Pillow reads no .avif; save it as PNG or JPEG, or update Pillow")


def unreadable() -> tuple[type[BaseException], ...]:
    """What Pillow raises for a file that is no image, a damaged one or one with too many pixels: its readers raise
    nearly anything."""
    odd = (
        ValueError,
        SyntaxError,
        ArithmeticError,
        EOFError,
        LookupError,
        TypeError,
        AttributeError,
        MemoryError,
        RuntimeError,
    )
    return (DataError, OSError, Warning, struct.error, zlib.error, pillow().DecompressionBombError, *odd)


def reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:100]


def read_pixels(stream: IO[bytes], near: int | None = None) -> AnyArray:
    """(1 or 3, h, w) uint8, upright. Above Pillow's limit of pixels an image counts as unreadable.

    With `near`, a JPEG is decoded at a fraction of its size, but not below twice `near`: much faster for photographs.
    """
    Image = pillow()
    from PIL import ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(stream) as picture:
            if near is not None:
                picture.draft(None, (2 * near, 2 * near))
            upright = ImageOps.exif_transpose(picture)
            if upright.mode in ("I", "I;16", "F"):
                return _scaled_gray(np.asarray(upright, dtype=np.float64))
            if upright.mode in GRAY:
                return np.asarray(upright.convert("L"))[None]
            return np.ascontiguousarray(np.asarray(upright.convert("RGB")).transpose(2, 0, 1))


def check_header(stream: IO[bytes]) -> None:
    """Raises one of `unreadable()` unless the beginning of the file is that of an image of tolerable size."""
    Image = pillow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(stream) as picture:
            if 0 in picture.size:
                raise ValueError(f"the image has size {picture.size}")


def check_whole(stream: IO[bytes]) -> None:
    """Raises one of `unreadable()` if a PNG file is damaged anywhere: each of its parts has a checksum."""
    Image = pillow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(stream) as picture:
            picture.verify()


def squared(picture: AnyArray, side: int) -> AnyArray:
    """The middle square of (c, h, w), scaled to (c, side, side)."""
    Image = pillow()
    height, width = picture.shape[1:]
    edge = min(height, width)
    top, left = (height - edge) // 2, (width - edge) // 2
    middle = picture[:, top : top + edge, left : left + edge]
    return np.stack(
        [np.asarray(Image.fromarray(channel).resize((side, side), Image.Resampling.BICUBIC)) for channel in middle]
    )


def _scaled_gray(values: AnyArray) -> AnyArray:
    """Deep gray as bytes: 16 bits are divided by 257, values within a byte stay."""
    top = float(values.max(initial=0.0))
    return np.clip(values / (1.0 if top <= 255 else 257.0), 0, 255).round().astype(np.uint8)[None]
