"""The only place where Pillow opens a file: the format by the ending and the first bytes, never by what Pillow thinks
it is; the memory it will take is known before a pixel is decoded."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from ally.data.damage import first_line
from ally.data.paths import open_regular, os_reason
from ally.data.size_limits import advise, find_limit, in_words
from ally.errors import AllyError, DataError

SAFE = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
"""Formats that may stand under the ending of one another: real folders have many a JPEG called .png."""
OTHERS = {
    ".avif": ("AVIF", "HEIF"),
    ".heic": ("HEIF",),
    ".heif": ("HEIF",),
    ".jp2": ("JPEG2000",),
    ".pgm": ("PPM",),
    ".ppm": ("PPM",),
}
"""Formats that are opened only where the ending says so."""
UNREADABLE = "the image cannot be read"
HEAD = 16
MEMORY = 2**29
"""Bytes that decoding may take: an RGB picture at Pillow's limit of 89 million pixels takes them."""
DECODER = {"WEBP": 12, "JPEG2000": 16, "HEIF": 4, "AVIF": 6}
"""Bytes a pixel that the decoder of a format takes for itself, as measured."""
ONE_BYTE = ("1", "L", "P")
SCANS = 2**30
"""A progressive JPEG may be decoded in so many pixels times scans; each of its scans passes over the whole picture."""
FEW = 20
"""As many scans are always accepted: cameras and programs write about ten."""
TILE_WIDTH, TILE_LENGTH, ROWS_PER_STRIP = 322, 323, 278


@contextmanager
def open_picture(source: Path | IO[bytes], name: str, near: int | None = None) -> Iterator[Any]:
    """A picture of Pillow to decode, of a regular file or of bytes called `name`. Whatever is raised is a `DataError`.

    With `near`, a JPEG is decoded at a fraction of its size, but not below twice `near`: much faster for photographs.
    """
    with open_header(source, name) as picture, BUDGET.reserve(prepare_decoding(picture, near)):
        yield picture


@contextmanager
def open_header(source: Path | IO[bytes], name: str) -> Iterator[Any]:
    """The same for its header alone; decoding it is not prepared."""
    try:
        with ExitStack() as stack:
            stream = stack.enter_context(open_regular(source)) if isinstance(source, Path) else source
            from PIL import Image

            kind = _find_format(stream.read(HEAD), name)
            stream.seek(0)
            stack.enter_context(_SILENCE)
            picture = stack.enter_context(Image.open(stream, formats=[kind]))
            _ensure_size(picture.size, Image.MAX_IMAGE_PIXELS)
            if kind == "JPEG" and "progressive" in picture.info:
                _ensure_few_scans(stream, picture.width * picture.height)
            yield picture
    except AllyError:
        raise
    # Its readers raise nearly anything for a file that is damaged or no picture.
    except Exception as error:
        system = isinstance(error, OSError) and error.errno is not None
        raise unreadable(os_reason(error) if system else first_line(error)) from error


def prepare_decoding(picture: Any, near: int | None = None) -> int:
    """The bytes that decoding will take at its peak; raises `DataError` if they are too many."""
    pixels = picture.width * picture.height
    if near is not None:
        picture.draft(None, (2 * near, 2 * near))
    size, limit = _count_bytes(picture, pixels), find_limit(MEMORY)
    if size > limit:
        raise unreadable(f"decoding it takes {in_words(size)}; {advise(limit)}")
    return size


def unreadable(reason: str) -> DataError:
    return DataError(f"{UNREADABLE} ({reason})")


def _find_format(head: bytes, name: str) -> str:
    """The name that Pillow has for the format. Pictures that are programs or lists of commands, such as PostScript and
    metafiles, are none of these."""
    ending = Path(name).suffix.lower()
    kind = _recognise(head)
    if kind in SAFE or kind in OTHERS.get(ending, ()):
        return _find_reader(kind)
    if not head:
        raise DataError("the file is empty")
    if kind is None:
        raise unreadable("cannot identify image: its first bytes are those of no kind that is read")
    raise unreadable(f"it is {kind} and is called {ending or 'without ending'}; rename it")


def _recognise(head: bytes) -> str | None:
    starts = {
        b"\x89PNG\r\n\x1a\n": "PNG",
        b"\xff\xd8\xff": "JPEG",
        b"GIF8": "GIF",
        b"BM": "BMP",
        b"II\x2a\0": "TIFF",
        b"MM\0\x2a": "TIFF",
        b"II\x2b\0": "TIFF",
        b"MM\0\x2b": "TIFF",
        b"\xff\x4f\xff\x51": "JPEG2000",
        b"\0\0\0\x0cjP  \r\n\x87\n": "JPEG2000",
    }
    for start, kind in starts.items():
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    if head[4:8] == b"ftyp":
        return "AVIF" if head[8:12] in (b"avif", b"avis") else "HEIF"
    return "PPM" if head[:1] == b"P" and head[1:2] in b"0 1 2 3 4 5 6 f y".split() else None


def _find_reader(kind: str) -> str:
    """Of .avif and .heic, the reader that is installed."""
    if kind == "HEIF" and not _register_heif():
        raise DataError("reading .heic needs pillow-heif: pip install 'ally-learn[heif]'")
    if kind == "AVIF":
        from PIL import features

        if not features.check("avif"):
            if not _register_heif():
                raise DataError("this Pillow reads no .avif; save it as PNG or JPEG, or update Pillow")
            return "HEIF"
    return kind


@cache
def _register_heif() -> bool:
    """Whether Pillow reads .heic files from now on: by the extra part pillow-heif."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def _ensure_size(size: tuple[int, int], most: int | None) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise unreadable(f"it has the size {width}×{height}")
    if most is not None and width * height > most:
        raise unreadable(f"Image size ({width}×{height} pixels) exceeds the limit of {most}: a decompression bomb?")


def _ensure_few_scans(stream: IO[bytes], pixels: int) -> None:
    place = stream.tell()
    stream.seek(0)
    scans = sum(block.count(b"\xff\xda") for block in iter(lambda: stream.read(2**20), b""))
    stream.seek(place)
    if scans > max(FEW, SCANS // max(1, pixels)):
        raise unreadable(f"it is a JPEG in {scans} passes, far too many; save it again")


def _count_bytes(picture: Any, pixels: int) -> int:
    """What decoding takes at its peak, with the copies that follow. `pixels` are those of the file; a JPEG may be
    decoded at a fraction of them."""
    stored = _count_pixel_bytes(picture.mode)
    copies = 2 if picture.mode in ("RGB", "L") else stored
    own = DECODER.get(picture.format, 0) * pixels
    if picture.format in ("JPEG", "MPO") and "progressive" in picture.info:
        # All coefficients are held, two bytes each, fewer of a channel that is sampled less often.
        shares = [across * down for _, across, down, _ in picture.layer]
        own = 2 * pixels * sum(shares) // max(1, *shares)
    if picture.format == "TIFF":
        own = stored * _count_strip(picture)
    if any(";16" in str(tile[3]) for tile in picture.tile) and stored == 4:
        # Deep colours become bytes, but are unpacked whole.
        own += 3 * pixels
    return int(picture.width * picture.height * (stored + copies) + own)


def _count_pixel_bytes(mode: str) -> int:
    if mode in ONE_BYTE:
        return 1
    return 2 if mode.startswith("I;16") else 4


def _count_strip(picture: Any) -> int:
    """Pixels of a tile or strip of a TIFF file, which is decoded in one piece."""
    tags = picture.tag_v2
    if TILE_WIDTH in tags or TILE_LENGTH in tags:
        return int(tags.get(TILE_WIDTH, picture.width)) * int(tags.get(TILE_LENGTH, picture.height))
    return int(picture.width) * min(int(tags.get(ROWS_PER_STRIP, picture.height)), int(picture.height))


class DecodingBudget:
    """Memory for all pictures that threads of this process decode at the same time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0

    @contextmanager
    def reserve(self, size: int) -> Iterator[None]:
        """Waits until there is room, or until there is no other picture."""
        limit = find_limit(MEMORY)
        with self._changed:
            self._changed.wait_for(lambda: not self._taken or self._taken + size <= limit)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


class Silence:
    """Without Python's warnings while any thread is inside: filters are those of the whole process, so that the first
    sets them aside and the last brings them back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._filters.__exit__(None, None, None)


BUDGET = DecodingBudget()
_SILENCE = Silence()
