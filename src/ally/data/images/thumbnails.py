"""Images as small arrays of one size, kept on disk only where asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ally.data.identity import content_hash
from ally.data.images.opening import open_header, open_picture, prepare_decoding
from ally.data.images.pixels import read_square
from ally.data.paths import open_regular, os_reason
from ally.errors import DataError
from ally.types import AnyArray

EDGE = 2**16
"""Bytes at the beginning and at the end of a file that its hash reads."""
PNG, JPEG = b"\x89PNG", b"\xff\xd8"
NEAR = 32
"""The side for which a JPEG is looked at before anyone reads it."""
NEUTRAL = 128
"""Pixels of an image that cannot be read."""


@dataclass(frozen=True)
class Thumbnails:
    """The middle square of an image, scaled to ``(3, side, side)`` uint8; gray images have three equal channels."""

    side: int = 32
    cache: Path | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return 3, self.side, self.side

    def read(self, path: Path) -> AnyArray:
        """Raises `DataError` with the reason if the image cannot be read."""
        if self.cache is None:
            return self._decode(path)
        state = path.stat()
        key = content_hash(
            str(path).encode("utf-8", "surrogateescape"), f"{state.st_size} {state.st_mtime_ns} {self.side}".encode()
        )
        kept = self.cache / key[1:3] / f"{key}.npy"
        try:
            found: AnyArray = np.load(kept, allow_pickle=False)
            if found.shape == self.shape and found.dtype == np.uint8:
                return found
        except (OSError, ValueError, EOFError):
            pass
        pixels = self._decode(path)
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_name(f"{key}.{os.getpid()}.part")
        try:
            with partial.open("wb") as out:
                np.save(out, pixels)
            partial.replace(kept)
        finally:
            partial.unlink(missing_ok=True)
        return pixels

    def _decode(self, path: Path) -> AnyArray:
        pixels = read_square(path, path.name, self.side, near=self.side)
        return np.ascontiguousarray(np.broadcast_to(pixels, self.shape))


def check_image(path: Path) -> str:
    """A hash of size, beginning and end. Raises `DataError` if the file is no image, or is cut short."""
    try:
        with open_regular(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            if not size:
                raise DataError("the file is empty")
            stream.seek(0)
            head = stream.read(EDGE)
            stream.seek(max(0, size - EDGE))
            tail = stream.read(EDGE)
    except OSError as error:
        raise DataError(f"the image cannot be read ({os_reason(error)})") from error
    if head.startswith(PNG) and b"IEND" in tail[-1024:]:
        with open_header(path, path.name) as picture:
            prepare_decoding(picture)
            picture.verify()  # each of its parts has a checksum
    elif head.startswith(JPEG) and b"\xff\xd9" in tail[-1024:]:
        with open_header(path, path.name) as picture:
            prepare_decoding(picture, NEAR)
    else:
        with open_picture(path, path.name) as picture:
            picture.load()
    return content_hash(str(size).encode(), head, tail)
