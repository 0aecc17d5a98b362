"""Pictures of other people: the format by ending and first bytes, bounded memory, the same pixels as Pillow's."""

import io
import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from ally.data.encoders.pictures import LONGEST, read_pictures
from ally.data.images.opening import MEMORY, open_header, open_picture
from ally.data.images.pixels import convert_pixels, find_orientation, read_square, squared, turn
from ally.data.images.thumbnails import Thumbnails, check_image
from ally.errors import DataError

SAFE = {"PNG": ".png", "JPEG": ".jpg", "GIF": ".gif", "BMP": ".bmp", "WEBP": ".webp", "TIFF": ".tif"}
REFUSED = ("DDS", "EPS", "ICNS", "ICO", "IM", "JPEG2000", "PCX", "PPM", "QOI", "SGI", "SPIDER", "TGA", "XBM", "AVIF")


def write_picture(path, kind, mode="RGB"):
    mode = {"XBM": "1", "SPIDER": "F"}.get(kind, mode)
    data = io.BytesIO()
    Image.new(mode, (64, 64), 1).save(data, kind)
    path.write_bytes(data.getvalue())
    return path


def read_all(path):
    with open_picture(path, path.name) as picture:
        return turn(convert_pixels(picture), find_orientation(picture))


@pytest.mark.parametrize("kind", SAFE)
@pytest.mark.parametrize("ending", [*SAFE.values(), ".heic"])
def test_a_safe_picture_opens_whatever_its_ending(tmp_path, kind, ending):
    path = write_picture(tmp_path / f"a{ending}", kind)
    check_image(path)
    assert Thumbnails().read(path).shape == (3, 32, 32)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("ending", [".png", ".jpeg", ".tif"])
def test_any_other_picture_needs_its_own_ending(tmp_path, kind, ending):
    path = write_picture(tmp_path / f"a{ending}", kind)
    for read in (check_image, Thumbnails().read):
        with pytest.raises(DataError, match="cannot be read"):
            read(path)


@pytest.mark.parametrize(
    ("kind", "ending"), [("JPEG2000", ".jp2"), ("PPM", ".ppm"), ("PPM", ".pgm"), ("AVIF", ".avif")]
)
def test_it_opens_under_its_own_ending(tmp_path, kind, ending):
    path = write_picture(tmp_path / f"a{ending}", kind)
    check_image(path)
    assert Thumbnails().read(path).shape == (3, 32, 32)


def test_heic_opens_under_its_ending_alone(tmp_path):
    pillow_heif = pytest.importorskip("pillow_heif")
    pillow_heif.from_pillow(Image.new("RGB", (64, 64))).save(tmp_path / "a.heic")
    check_image(tmp_path / "a.heic")
    (tmp_path / "a.heic").rename(tmp_path / "a.jpg")
    with pytest.raises(DataError, match=r"it is HEIF and is called \.jpg; rename it"):
        check_image(tmp_path / "a.jpg")


@pytest.mark.parametrize("orientation", range(10))
def test_pictures_are_turned_as_pillow_turns_them(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = np.random.default_rng(0).integers(0, 255, (5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as picture:
        expected = np.asarray(ImageOps.exif_transpose(picture)).transpose(2, 0, 1)
    np.testing.assert_array_equal(read_all(tmp_path / "a.png"), expected)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F"])
def test_strips_of_rows_give_the_same_pixels_as_the_whole(tmp_path, monkeypatch, mode):
    rng = np.random.default_rng(1)
    if mode in ("I;16", "I", "F"):
        values = rng.integers(0, 65536, (40, 30)).astype({"I;16": "<u2", "I": "<i4", "F": "<f4"}[mode])
        picture = Image.fromarray(values)
    else:
        picture = Image.fromarray(rng.integers(0, 255, (40, 30, 3), dtype=np.uint8)).convert(mode)
    assert picture.mode == mode
    monkeypatch.setattr("ally.data.images.pixels.AT_ONCE", 100)
    if mode in ("I;16", "I", "F"):
        naive = np.clip(np.asarray(picture, dtype=np.float64) / 257, 0, 255).round().astype(np.uint8)[None]
    elif mode in ("1", "L", "LA"):
        naive = np.asarray(picture.convert("L"))[None]
    else:
        naive = np.asarray(picture.convert("RGB")).transpose(2, 0, 1)
    np.testing.assert_array_equal(convert_pixels(picture), naive)
    picture.save(tmp_path / "a.tif")
    np.testing.assert_array_equal(read_square(tmp_path / "a.tif", "a.tif", 8), squared(naive, 8))


def test_values_within_a_byte_stay(monkeypatch):
    monkeypatch.setattr("ally.data.images.pixels.AT_ONCE", 8)
    values = np.arange(256, dtype=np.int32).reshape(32, 8)
    np.testing.assert_array_equal(convert_pixels(Image.fromarray(values))[0], values)


def write_blank_png(path, width, height, depth=8, colours=0):
    """A few kilobytes for any number of equal pixels."""
    row = b"\0" + bytes(width * depth // 8 * {0: 1, 2: 3, 6: 4}[colours])
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    with path.open("wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n")
        head = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
        for name, content in ((b"IHDR", head), (b"IDAT", data), (b"IEND", b"")):
            out.write(struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content)))
    return path


def test_bytes_are_bounded_and_a_variable_raises_the_bound(tmp_path, monkeypatch):
    path = write_blank_png(tmp_path / "a.png", 400, 300, 16, 6)
    monkeypatch.setenv("ALLY_FILE_GB", "0.0001")
    with pytest.raises(DataError, match=r"decoding it takes 1.26 MiB; at most 105 KiB.*ALLY_FILE_GB"):
        read_all(path)
    monkeypatch.setenv("ALLY_FILE_GB", "0.1")
    assert read_all(path).shape == (3, 300, 400)


def test_a_colour_picture_at_the_limit_of_pillow_is_within_the_bound():
    assert (Image.MAX_IMAGE_PIXELS or 0) * 6 <= MEMORY


def test_a_tile_of_a_small_picture_is_small(tmp_path):
    content = zlib.compress(bytes(64))
    tags = {256: 8, 257: 8, 258: 8, 259: 8, 262: 1, 277: 1, 322: 2**16, 323: 2**16, 324: 8, 325: len(content)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    head = struct.pack("<2sHI", b"II", 42, 8 + len(content)) + content
    (tmp_path / "a.tif").write_bytes(head + struct.pack("<H", len(tags)) + entries + bytes(4))
    with pytest.raises(DataError, match="decoding it takes 4 GiB"):
        read_all(tmp_path / "a.tif")


def test_a_jpeg_of_thousands_of_passes_is_refused(tmp_path):
    Image.new("RGB", (600, 600)).save(tmp_path / "a.jpg", progressive=True)
    data = (tmp_path / "a.jpg").read_bytes()
    assert read_all(tmp_path / "a.jpg").shape == (3, 600, 600)
    (tmp_path / "a.jpg").write_bytes(data[:-2] + data[data.rindex(b"\xff\xda") : -2] * 5000 + b"\xff\xd9")
    with pytest.raises(DataError, match="passes, far too many"):
        read_all(tmp_path / "a.jpg")


def test_a_long_strip_is_cut_for_an_encoder(tmp_path):
    path = write_blank_png(tmp_path / "a.png", 9, 60000)
    (found,) = read_pictures([path], 8)
    assert found.shape == (3, 9 * LONGEST, 9)


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(DataError, match="not a regular file"):
        check_image(tmp_path / "a.png")
    (told,) = read_pictures([tmp_path / "a.png"], 8)
    assert isinstance(told, DataError)


def test_bytes_without_an_ending_open_if_they_are_safe():
    data = io.BytesIO()
    Image.new("L", (4, 3)).save(data, "PNG")
    data.seek(0)
    with open_header(data, "sample") as picture:
        assert picture.size == (4, 3)
    with pytest.raises(DataError, match="cannot identify"), open_header(io.BytesIO(b"%!PS-Adobe-3.0"), "sample"):
        pass
