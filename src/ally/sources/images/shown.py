"""Images for a browser: upright, bounded in size, re-encoded, cached on disk.

A source file is never served directly: only its pixels are passed on.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ally.errors import DataError
from ally.sources.identity import content_hash
from ally.sources.images.pixels import pillow, reason, unreadable
from ally.sources.paths import os_reason

EDGES = {"thumb": 192, "view": 1600, "large": 4096}
"""The longer side of each size, in pixels; smaller images stay as they are."""
LOSSLESS = 512 * 512
"""Images up to this many pixels are sent losslessly, because a small JPEG looks dirty when scaled up on a screen."""
QUALITY = 88
AT_ONCE = 2
"""Images decoded at the same time: one of 50 megapixels takes 150 MB."""
MIMES = {".png": "image/png", ".jpg": "image/jpeg"}


@dataclass(frozen=True)
class Picture:
    """A file to show; `stamp` changes with the content."""

    path: Path
    mime: str
    stamp: str


@dataclass(frozen=True)
class ImageFrame:
    """Size of an image, upright, and a stamp that changes with the file."""

    width: int
    height: int
    stamp: str


@dataclass(frozen=True)
class Pictures:
    """Shows image files, from copies in `folder`."""

    folder: Path
    _turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE), repr=False)

    def frame(self, path: Path) -> ImageFrame:
        """From the head of the file alone. Raises `DataError` with the reason if it is no image."""
        with _opened(path) as picture:
            width, height = picture.size
            if picture.getexif().get(0x0112, 1) in (5, 6, 7, 8):
                width, height = height, width
        return ImageFrame(width, height, _stamp(path))

    def make(self, path: Path, size: str) -> Picture:
        """The image at one of the `EDGES`."""
        stamp = _stamp(path)
        stem = self.folder / stamp[1:3] / f"{stamp}-{size}"
        for ending, mime in MIMES.items():
            if stem.with_suffix(ending).exists():
                return Picture(stem.with_suffix(ending), mime, stamp)
        seen = self.folder / stamp[1:3] / f"{stamp}-view.jpg"
        with self._turns:
            # A large photo takes seconds to decode: its thumbnail is made from the copy that was looked at.
            image = _upright(seen if size == "thumb" and seen.exists() else path, EDGES[size])
            ending = ".png" if image.mode == "RGBA" or image.width * image.height <= LOSSLESS else ".jpg"
            kept = stem.with_suffix(ending)
            kept.parent.mkdir(parents=True, exist_ok=True)
            partial = kept.with_name(f"{kept.name}.{os.getpid()}.{threading.get_ident()}.part")
            try:
                if ending == ".png":
                    image.save(partial, "PNG", compress_level=1)
                else:
                    image.save(partial, "JPEG", quality=QUALITY)
                partial.replace(kept)
            finally:
                partial.unlink(missing_ok=True)
        return Picture(kept, MIMES[ending], stamp)


def _stamp(path: Path) -> str:
    try:
        state = path.stat()
    except OSError as error:
        raise DataError(f"the image cannot be read ({os_reason(error)})") from error
    return content_hash(str(path).encode("utf-8", "surrogateescape"), f"{state.st_size} {state.st_mtime_ns}".encode())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file by Pillow; too many pixels, and whatever its readers raise, is a `DataError`."""
    Image = pillow()
    try:
        with warnings.catch_warnings(), path.open("rb") as stream:
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(stream) as picture:
                yield picture
    except unreadable() as error:
        if isinstance(error, DataError):
            raise
        system = isinstance(error, OSError) and error.errno is not None
        raise DataError(f"the image cannot be shown ({os_reason(error) if system else reason(error)})") from error


def _upright(path: Path, edge: int) -> Any:
    """RGB, L or RGBA, turned as the camera was held, and no longer than `edge` on either side."""
    from PIL import ImageOps

    Image = pillow()
    with _opened(path) as picture:
        picture.draft(None, (edge, edge))
        if picture.mode in ("I", "I;16", "F"):
            values = np.asarray(picture, dtype=np.float64)
            top = float(values.max(initial=0.0))
            image = Image.fromarray(np.clip(values / (1.0 if top <= 255 else 257.0), 0, 255).round().astype(np.uint8))
        else:
            clear = "A" in picture.mode or "transparency" in picture.info
            gray = picture.mode in ("1", "L")
            image = picture.convert("RGBA" if clear else "L" if gray else "RGB")
        image.info = {}
        turned = ImageOps.exif_transpose(_with_exif(image, picture))
        turned.thumbnail((edge, edge), Image.Resampling.LANCZOS)
        turned.info = {}
        turned.getexif().clear()
        return turned


def _with_exif(image: Any, picture: Any) -> Any:
    """Only its orientation goes along."""
    image.getexif().clear()
    turn = picture.getexif().get(0x0112)
    if turn is not None:
        image.getexif()[0x0112] = turn
    return image
