"""Pictures that are something else, or unpack to more than a machine has."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from case import HostileCase, Words
from PIL import Image

HONEST = {"cat": (200, 30, 30), "dog": (30, 30, 200)}
COMMANDS: tuple[Words, ...] = (
    ("query", "{path}", "--n", "1", "--label", "folder", "--strategy", "random", "--model", "linear"),
    ("new", "pets", "--from", "{path}", "--classes", "cat,dog", "--evaluate", "0"),
)
UNREAD = "cannot be read|are left out|problems?:"


def pack_png(width: int, height: int, depth: int = 8, colours: int = 2, extra: bytes = b"") -> bytes:
    """Any number of black pixels in a few kilobytes."""
    row = b"\0" + bytes(width * depth // 8 * {0: 1, 2: 3, 3: 1, 6: 4}[colours])
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + pack_chunk(b"IHDR", head) + extra + pack_chunk(b"IDAT", data) + pack_chunk(b"IEND", b"")
    )


def pack_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def pack_tiff(tags: dict[int, int], content: bytes) -> bytes:
    """One page; every tag is one number of 32 bits, and the content begins at byte 8."""
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    start = struct.pack("<2sHI", b"II", 42, 8 + len(content)) + content
    return start + struct.pack("<H", len(tags)) + entries + bytes(4)


def save_as(kind: str, mode: str = "RGB", side: int = 64, **options: object) -> bytes:
    data = io.BytesIO()
    Image.new(mode, (side, side), 1).save(data, kind, **options)
    return data.getvalue()


def repeat_scans() -> bytes:
    data = save_as("JPEG", side=3000, progressive=True)
    return data[:-2] + data[data.rindex(b"\xff\xda") : -2] * 3000 + b"\xff\xd9"


def pack_text_bomb() -> bytes:
    texts = b"".join(pack_chunk(b"zTXt", b"k%d\0\0" % n + zlib.compress(bytes(2**26), 9)) for n in range(20))
    return pack_png(64, 64, extra=texts)


def pack_profile_bomb() -> bytes:
    return pack_png(64, 64, extra=pack_chunk(b"iCCP", b"p\0\0" + zlib.compress(bytes(2**30), 9)))


def pack_exif_bomb() -> bytes:
    """A directory of 60 000 entries that all claim 4 GiB, and one that leads back to itself."""
    entries = b"".join(struct.pack("<HHII", tag, 7, 2**32 - 1, 8) for tag in range(60000))
    loop = struct.pack("<HHII", 0x8769, 4, 1, 8)
    exif = b"II\x2a\0\x08\0\0\0" + struct.pack("<H", 60001) + entries + loop + struct.pack("<I", 8)
    return pack_png(64, 64, extra=pack_chunk(b"eXIf", exif))


def pack_tile() -> bytes:
    content = zlib.compress(bytes(4096))
    tags = {256: 64, 257: 64, 258: 8, 259: 8, 262: 1, 277: 1, 322: 2**15, 323: 2**15, 324: 8, 325: len(content)}
    return pack_tiff(tags, content)


def pack_lying_tiff() -> bytes:
    """Tags whose counts and places lie far behind the end."""
    entries = b"".join(struct.pack("<HHII", tag, 3, 2**31, 2**31) for tag in range(256, 400))
    return b"II\x2a\0\x08\0\0\0" + struct.pack("<H", 144) + entries + struct.pack("<I", 8)


def pack_bmp() -> bytes:
    """Run-length coded: 255 pixels in two bytes."""
    body = b"\xff\1" * 350_000
    head = struct.pack("<IiiHHIIiiII", 40, 9400, 9400, 1, 8, 1, len(body), 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 54 + 1024 + len(body), 0, 0, 54 + 1024) + head + bytes(1024) + body


def pack_gif() -> bytes:
    """The canvas is small, its first frame is not."""
    frame = b"," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\x08\x02\x4c\x01\0;"
    return b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + bytes(6) + frame


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 64\n(marker) (w) file pop\nshowpage\n%%EOF\n"
METAFILE = b"\xd7\xcd\xc6\x9a" + bytes(18) + b"\1\0\x09\0" + bytes(200)
ENHANCED = b"\1\0\0\0" + struct.pack("<I", 108) + bytes(32) + b" EMF" + bytes(300)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'

CONTENTS: dict[str, tuple[str, Callable[[], bytes], bool]] = {
    "PostScript called .png": ("a.png", lambda: POSTSCRIPT, True),
    "PostScript called .jpg": ("a.jpg", lambda: POSTSCRIPT, False),
    "PostScript behind the head of a DOS file": (
        "a.tif",
        lambda: b"\xc5\xd0\xd3\xc6" + struct.pack("<II", 30, len(POSTSCRIPT)) + bytes(18) + POSTSCRIPT,
        False,
    ),
    "a metafile called .bmp": ("a.bmp", lambda: METAFILE, False),
    "an enhanced metafile called .gif": ("a.gif", lambda: ENHANCED, False),
    "a drawing called .png": ("a.png", lambda: SVG, False),
    **{
        f"{kind} called .png": ("a.png", lambda kind=kind, mode=mode: save_as(kind, mode), kind == "DDS")
        for kind, mode in (
            ("DDS", "RGB"),
            ("ICO", "RGB"),
            ("ICNS", "RGB"),
            ("PCX", "RGB"),
            ("SGI", "RGB"),
            ("TGA", "RGB"),
            ("QOI", "RGB"),
            ("XBM", "1"),
            ("SPIDER", "F"),
            ("JPEG2000", "RGB"),
            ("AVIF", "RGB"),
        )
    },
    "16 bits a colour in a few kilobytes": ("a.png", lambda: pack_png(9000, 9000, 16, 2), True),
    "16 bits a gray in a few kilobytes": ("a.png", lambda: pack_png(9400, 9400, 16, 0), False),
    "deep colours within the limits": ("a.png", lambda: pack_png(7600, 7600, 16, 2), False),
    "colours at the limit of pixels": ("a.png", lambda: pack_png(9459, 9459), False),
    "clear colours at the limit of pixels": ("a.png", lambda: pack_png(9459, 9459, 8, 6), False),
    "a billion pixels": ("a.png", lambda: pack_png(30000, 30000, 8, 0), False),
    "a strip of one column": ("a.png", lambda: pack_png(1, 2**22), False),
    "a strip of one row": ("a.png", lambda: pack_png(2**22, 1), False),
    "texts that unpack to a gigabyte": ("a.png", pack_text_bomb, False),
    "a colour profile that unpacks to a gigabyte": ("a.png", pack_profile_bomb, False),
    "an EXIF directory of lies": ("a.png", pack_exif_bomb, False),
    "a TIFF tile of a gigabyte": ("a.tif", pack_tile, False),
    "TIFF tags that lie": ("a.tif", pack_lying_tiff, False),
    "a run-length bitmap": ("a.bmp", pack_bmp, False),
    "a GIF frame beyond its canvas": ("a.gif", pack_gif, False),
    "a JPEG of thousands of passes": ("a.jpg", repeat_scans, False),
    "a WebP of 16383 pixels a side": ("a.webp", lambda: save_as("WEBP", side=7000), False),
    "JPEG 2000 of a kilobyte": ("a.jp2", lambda: save_as("JPEG2000", side=8000), False),
    "TIFF pixels in a billion": (
        "a.tif",
        lambda: pack_tiff({256: 2**16, 257: 2**16, 258: 8, 262: 1, 273: 8}, b""),
        False,
    ),
    "no bytes at all": ("a.png", lambda: b"", False),
}
ACCEPTED = (
    "a strip",
    "deep colours",
    "16 bits a gray",
    "colours at the limit of pixels",
    "an EXIF",
    "texts that",
    "a colour profile",
)
"""These may be samples like others, if they stay within time and memory."""


def make_folder(folder: Path) -> Path:
    photos = folder / "photos"
    for name, colour in HONEST.items():
        (photos / name).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (40, 30), colour).save(photos / name / f"{number}.png")
    for number in range(3):
        Image.new("RGB", (40, 30), (10, 200, 10 * number)).save(photos / f"{number}.png")
    return photos


def make_with(name: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        photos = make_folder(folder)
        (photos / name).write_bytes(content())
        return photos

    return make


def make_links(folder: Path) -> Path:
    photos = make_folder(folder)
    Image.new("RGB", (40, 30)).save(folder.parent / "elsewhere" / "private.png")
    (photos / "out.png").symlink_to(folder.parent / "elsewhere" / "private.png")
    (photos / "loop.png").symlink_to("loop.png")
    (photos / "below").symlink_to(folder.parent / "elsewhere")
    return photos


def make_pipe(folder: Path) -> Path:
    photos = make_folder(folder)
    os.mkfifo(photos / "pipe.png")
    return photos


def make_device(folder: Path) -> Path:
    photos = make_folder(folder)
    (photos / "zero.png").symlink_to("/dev/zero")
    return photos


CASES = [
    *(
        HostileCase(
            name,
            make_with(file, content),
            "id" if name.startswith(ACCEPTED) else UNREAD,
            COMMANDS,
            short,
        )
        for name, (file, content, short) in CONTENTS.items()
    ),
    HostileCase("links out of a folder of photos", make_links, UNREAD, COMMANDS, False),
    HostileCase("a pipe called like a photo", make_pipe, UNREAD, COMMANDS, True),
    HostileCase("a device called like a photo", make_device, UNREAD, COMMANDS),
]
