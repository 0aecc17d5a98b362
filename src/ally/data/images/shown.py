"""Images for a browser: upright, bounded in size, re-encoded, cached on disk.

A source file is never served directly: only its pixels are passed on.
"""

from __future__ import annotations

import io
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ally.data.identity import content_hash
from ally.data.images.opening import open_picture
from ally.data.images.pixels import ORIENTATION, convert_pixels, find_orientation, is_deep, read_size
from ally.data.paths import os_reason
from ally.errors import DataError

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

    def frame(self, image: Path | bytes) -> ImageFrame:
        """Of a file, or of the bytes of one, from its head alone. Raises `DataError` with the reason if it is no
        image."""
        height, width = read_size(*_readable(image))
        return ImageFrame(width, height, _stamp(image))

    def make(self, image: Path | bytes, size: str) -> Picture:
        """The image at one of the `EDGES`."""
        stamp = _stamp(image)
        stem = self.folder / stamp[1:3] / f"{stamp}-{size}"
        for ending, mime in MIMES.items():
            if stem.with_suffix(ending).exists():
                return Picture(stem.with_suffix(ending), mime, stamp)
        seen = self.folder / stamp[1:3] / f"{stamp}-view.jpg"
        with self._turns:
            # A large photo takes seconds to decode: its thumbnail is made from the copy that was looked at.
            upright = _upright(seen if size == "thumb" and seen.exists() else image, EDGES[size])
            ending = ".png" if upright.mode == "RGBA" or upright.width * upright.height <= LOSSLESS else ".jpg"
            kept = stem.with_suffix(ending)
            kept.parent.mkdir(parents=True, exist_ok=True)
            partial = kept.with_name(f"{kept.name}.{os.getpid()}.{threading.get_ident()}.part")
            try:
                if ending == ".png":
                    upright.save(partial, "PNG", compress_level=1)
                else:
                    upright.save(partial, "JPEG", quality=QUALITY)
                partial.replace(kept)
            finally:
                partial.unlink(missing_ok=True)
        return Picture(kept, MIMES[ending], stamp)


DRAWN = "the picture.png"
"""What errors call a picture that is no file."""


def _readable(image: Path | bytes) -> tuple[Path | IO[bytes], str]:
    return (io.BytesIO(image), DRAWN) if isinstance(image, bytes) else (image, image.name)


def _stamp(image: Path | bytes) -> str:
    if isinstance(image, bytes):
        return content_hash(image)
    try:
        state = image.stat()
    except OSError as error:
        raise DataError(f"the image cannot be read ({os_reason(error)})") from error
    return content_hash(str(image).encode("utf-8", "surrogateescape"), f"{state.st_size} {state.st_mtime_ns}".encode())


def _upright(source: Path | bytes, edge: int) -> Any:
    """RGB, L or RGBA, turned as the camera was held, and no longer than `edge` on either side."""
    from PIL import Image, ImageOps

    with open_picture(*_readable(source), near=edge // 2) as picture:
        picture.load()
        if is_deep(picture):
            image: Any = Image.fromarray(convert_pixels(picture)[0])
        else:
            clear = "A" in picture.mode or "transparency" in picture.info
            gray = picture.mode in ("1", "L")
            mode = "RGBA" if clear else "L" if gray else "RGB"
            # One of the right kind is made smaller as it is: a copy of a large photo takes as much memory again.
            image = picture if picture.mode == mode else picture.convert(mode)
        turn = find_orientation(picture)
        image.info = {}
        image.thumbnail((edge, edge), Image.Resampling.LANCZOS)
        image.getexif().clear()
        image.getexif()[ORIENTATION] = turn
        turned = ImageOps.exif_transpose(image)
        turned.info = {}
        turned.getexif().clear()
        return turned
