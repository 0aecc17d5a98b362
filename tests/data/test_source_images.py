import os

import numpy as np
import pytest
from PIL import Image

from ally.data import open_source
from ally.data.images.thumbnails import NEUTRAL
from ally.errors import DataError, IdError, InputError

IDS = ["5.jpg", "cat/1.jpg", "cat/2.png", "dog/3.jpg", "dog/deep/4.jpg"]


def test_ids_are_paths_and_stay(photos, tmp_path):
    samples = open_source(photos)
    assert samples.kind.name == "images"
    found = list(samples.scan())
    assert [sample.id for sample in found] == IDS
    assert all(sample.label is None for sample in found)
    assert len(samples.problems) == 0
    moved = photos.rename(tmp_path / "elsewhere")
    assert list(open_source(moved, known=samples.fingerprint()).scan()) == found


def test_folders_as_labels(photos):
    labels = {sample.id: sample.label for sample in open_source(photos, label="folder").scan()}
    assert labels == {
        "5.jpg": None,
        "cat/1.jpg": "cat",
        "cat/2.png": "cat",
        "dog/3.jpg": "dog",
        "dog/deep/4.jpg": "dog",
    }


def test_not_recursive(photos):
    assert [sample.id for sample in open_source(photos, recursive=False).scan()] == ["5.jpg"]


def test_a_changed_image_has_another_hash(photos, make_image):
    before = {sample.id: sample.hash for sample in open_source(photos).scan()}
    make_image(photos / "5.jpg", colour=(1, 2, 3))
    after = {sample.id: sample.hash for sample in open_source(photos).scan()}
    assert {id for id in before if before[id] != after[id]} == {"5.jpg"}


def test_show_gives_the_file(photos):
    shown = open_source(photos).show("cat/2.png")
    assert shown.path == (photos / "cat/2.png").resolve()
    assert shown.mime == "image/png"


@pytest.mark.parametrize(
    "id", ["../photos/5.jpg", "/etc/passwd", "cat/../5.jpg", "nope.jpg", "", "cat", "cat\\1.jpg", "5.jpg\0", "C:/x.jpg"]
)
def test_show_refuses_what_is_not_an_image_of_the_folder(photos, id):
    with pytest.raises(IdError, match="no image"):
        open_source(photos).show(id)


def test_links_out_of_the_folder_are_refused_and_links_within_are_not(photos, tmp_path, make_image):
    secret = make_image(tmp_path / "secret.jpg")
    (photos / "out.jpg").symlink_to(secret)
    (photos / "within.jpg").symlink_to(photos / "5.jpg")
    (photos / "loop.jpg").symlink_to(photos / "loop.jpg")
    (photos / "outside").symlink_to(tmp_path)
    samples = open_source(photos)
    assert {sample.id for sample in samples.scan()} == {*IDS, "within.jpg"}
    assert "outside" in samples.problems.of("out.jpg")[0].reason
    assert "loop" in samples.problems.of("loop.jpg")[0].reason
    assert samples.problems.of("outside")[0].kind == "skipped"
    with pytest.raises(IdError, match="outside"):
        samples.show("out.jpg")


def test_a_pipe_named_like_an_image_does_not_block(photos):
    os.mkfifo(photos / "pipe.jpg")
    samples = open_source(photos)
    assert [sample.id for sample in samples.scan()] == IDS
    assert "regular" in samples.problems.of("pipe.jpg")[0].reason


def test_features_in_the_order_of_the_ids(photos):
    source = open_source(photos, size=16).features(["dog/3.jpg", "cat/1.jpg"])
    assert source.shape == (3, 16, 16)
    values = source.read(np.array([1, 0, 1]))
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values[0], values[2])
    assert values[0, 0].mean() > 150 > values[0, 2].mean(), "the cat is red"
    assert values[1, 2].mean() > 150 > values[1, 0].mean(), "the dog is blue"


def test_orientation_and_gray(tmp_path):
    pixels = np.zeros((30, 30), np.uint8)
    pixels[:10] = 250
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(pixels).save(tmp_path / "gray.png")
    Image.fromarray(pixels).convert("RGB").save(tmp_path / "turned.png", exif=exif)
    gray, turned = open_source(tmp_path).features(["gray.png", "turned.png"]).read(np.arange(2))
    np.testing.assert_array_equal(gray[0], gray[2])
    np.testing.assert_allclose(turned, gray[:, ::-1, ::-1], atol=2)


def test_large_photographs_are_decoded_small(tmp_path, make_image):
    make_image(tmp_path / "large.jpg", size=(2000, 1500))
    value = open_source(tmp_path).features(["large.jpg"]).read(np.arange(1))
    np.testing.assert_allclose(value[0].mean((1, 2)), (200, 30, 30), atol=4)


def test_what_vanishes_later_is_neutral_and_reported(photos):
    samples = open_source(photos)
    source = samples.features(IDS)
    (photos / "5.jpg").unlink()
    values = source.read(np.arange(5))
    assert (values[0] == NEUTRAL).all()
    assert "is missing" in samples.problems.of("5.jpg")[0].reason
    assert samples.missing(IDS) == ["5.jpg"]
    with pytest.raises(IdError, match=r"1 of 5 ids are not in .*'5\.jpg'.*missing"):
        samples.features(IDS)


def test_new_images_are_found_by_the_next_scan(photos, make_image):
    samples = open_source(photos)
    before = {sample.id for sample in samples.scan()}
    make_image(photos / "new" / "6.webp")
    assert {sample.id for sample in samples.scan()} - before == {"new/6.webp"}


def test_thumbnails_are_kept_only_where_asked(photos, tmp_path, make_image):
    files = sorted(photos.rglob("*"))
    open_source(photos).features(IDS).read(np.arange(5))
    assert sorted(photos.rglob("*")) == files
    cache = tmp_path / "campaign" / "thumbnails"
    samples = open_source(photos, cache=cache)
    first = samples.features(IDS).read(np.arange(5))
    kept = [path for path in cache.rglob("*") if path.is_file()]
    assert len(kept) == 5
    kept[0].write_bytes(b"damaged")
    np.testing.assert_array_equal(samples.features(IDS).read(np.arange(5)), first)
    make_image(photos / "5.jpg", size=(64, 64), colour=(9, 9, 9))
    assert not np.array_equal(samples.features(IDS).read(np.arange(5))[0], first[0]), "a changed image is decoded again"


def test_settings_that_do_not_fit(photos):
    with pytest.raises(InputError, match="text= does not apply to a folder of images"):
        open_source(photos, text="text")
    with pytest.raises(InputError, match="label='cat'"):
        open_source(photos, label="cat")
    with pytest.raises(InputError, match="size=4"):
        open_source(photos, size=4)
    (photos / "empty").mkdir()
    with pytest.raises(DataError, match="there are no images in the folder"):
        list(open_source(photos / "empty").scan())


def test_every_picture_is_read_or_named(tmp_path):
    rng = np.random.default_rng(0)
    pixels = Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8))
    for name, kind in (("a.png", "PNG"), ("b.jfif", "JPEG"), ("c.avif", "AVIF"), ("d.jp2", "JPEG2000")):
        pixels.save(tmp_path / name, kind)
    pytest.importorskip("pillow_heif").from_pillow(pixels).save(tmp_path / "e.HEIC")
    (tmp_path / "f.CR2").write_bytes(b"raw")
    (tmp_path / "notes.txt").write_text("no picture")
    samples = open_source(tmp_path)
    found = [sample.id for sample in samples.scan()]
    assert found == ["a.png", "b.jfif", "c.avif", "d.jp2", "e.HEIC"]
    assert [(problem.id, problem.kind) for problem in samples.problems] == [("f.CR2", "skipped")]
    assert samples.features(found).read(np.arange(5)).std(axis=(1, 2, 3)).min() > 20


def test_a_png_damaged_in_its_middle_is_no_sample(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("good.png", "bad.png"):
        Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(tmp_path / name)
    data = bytearray((tmp_path / "bad.png").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "bad.png").write_bytes(bytes(data))
    samples = open_source(tmp_path)
    assert [sample.id for sample in samples.scan()] == ["good.png"]
    assert samples.problems.first.startswith("bad.png: the image cannot be read (")
