import io

import numpy as np
import pytest
from PIL import Image

from ally.data.catalogue import load
from ally.errors import DataError, InputError


def png(pixels, **how):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", **how)
    return out.getvalue()


def put(root, **files):
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_png", ".png").replace("_jpg", ".jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture
def folder(tmp_path, write):
    """Ten cats and ten dogs of 20×20, some in deeper folders."""
    for kind, first in (("cat", 0), ("dog", 10)):
        for k in range(10):
            deep = "deep/deeper/" if k % 3 == 0 else ""
            path = tmp_path / "pets" / kind / f"{deep}{k}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(write.jpeg(first + k, side=20, kind="PNG"))
    return tmp_path / "pets"


def test_classes_are_the_first_folders(folder):
    data = load(str(folder))
    assert (data.name, data.kind, data.task, data.notes) == (str(folder), "images", "classification", ())
    assert data.pool.shape == (16, 3, 20, 20)
    assert data.pool.dtype == np.uint8
    assert sorted(data.test_labels) == ["cat", "cat", "dog", "dog"]
    pictures = {
        np.asarray(Image.open(path)).tobytes(): path.relative_to(folder).parts[0] for path in folder.rglob("*.png")
    }
    for image, label in [
        *zip(data.pool, data.pool_labels, strict=True),
        *zip(data.test, data.test_labels, strict=True),
    ]:
        assert pictures[image.transpose(1, 2, 0).tobytes()] == label


def test_unreadable_images_are_named_and_never_fatal(folder):
    (folder / "cat" / "broken.jpg").write_bytes(b"\xff\xd8\xff no")
    (folder / "dog" / "empty.png").write_bytes(b"")
    (folder / "dog" / "cut.png").write_bytes((folder / "dog" / "1.png").read_bytes()[:200])
    (folder / "notes.txt").write_text("no image")
    (folder / "stray.png").write_bytes((folder / "dog" / "1.png").read_bytes())
    (folder / "dog" / ".hidden.png").write_bytes(b"")
    data = load(str(folder))
    assert len(data.pool) + len(data.test) == 20
    assert all(name in data.notes[0] for name in ("3 of 23", "cat/broken.jpg", "dog/empty.png", "dog/cut.png"))
    assert data.notes[1] == "1 images lie in no folder of a class and are left out"


def test_no_readable_image_is_an_error(tmp_path):
    put(tmp_path, a__x_png=b"", b__y_png=b"")
    with pytest.raises(DataError, match=r"none of the 2 images in .* can be read \(a/x\.png"):
        load(str(tmp_path))


def test_folders_that_hold_no_classes(tmp_path, write):
    with pytest.raises(DataError, match="holds 0 images and none in a folder of a class"):
        load(str(tmp_path))
    put(tmp_path, x_png=write.jpeg(0, side=8))
    with pytest.raises(DataError, match="holds 1 images and none"):
        load(str(tmp_path))
    put(tmp_path, a__x_png=write.jpeg(0, side=8))
    with pytest.raises(DataError, match=r"of the class .*a.* only"):
        load(str(tmp_path))
    with pytest.raises(InputError, match="does not go with a folder"):
        load(str(tmp_path), label="y")


def test_an_official_split_is_kept(tmp_path, write):
    for side, n in (("train", 3), ("test", 2)):
        for kind in "ab":
            for k in range(n):
                put(tmp_path, **{f"{side}__{kind}__{k}_png": write.jpeg(k, side=8)})
    data = load(str(tmp_path))
    assert data.pool_labels.tolist() == list("aaabbb")
    assert data.test_labels.tolist() == list("aabb")


def test_many_sizes_become_the_middle_square(tmp_path):
    wide = np.zeros((30, 90, 3), np.uint8)
    wide[:, 30:60] = 255  # the middle square is white, both sides are black
    for k in range(5):
        put(tmp_path, **{f"a__{k}_png": png(wide), f"b__{k}_png": png(np.full((10, 10, 3), 9, np.uint8))})
    data = load(str(tmp_path))
    assert data.pool.shape[1:] == (3, 64, 64)
    assert (data.pool[data.pool_labels == "a"] == 255).all()
    assert (data.pool[data.pool_labels == "b"] == 9).all()
    assert "many sizes; each is cropped to its middle square and scaled to 64×64" in data.notes[0]


def test_large_images_of_one_size_are_scaled(tmp_path):
    for k in range(5):
        put(
            tmp_path,
            **{
                f"a__{k}_png": png(np.full((100, 120, 3), 7, np.uint8)),
                f"b__{k}_png": png(np.zeros((100, 120, 3), np.uint8)),
            },
        )
    data = load(str(tmp_path))
    assert data.pool.shape[1:] == (3, 64, 64)
    assert "the images have 120×100" in data.notes[0]


def test_gray_stays_one_channel_unless_mixed(tmp_path):
    gray, deep = np.full((8, 8), 77, np.uint8), np.full((8, 8), 257 * 50, np.uint16)
    for k in range(5):
        put(tmp_path, **{f"a__{k}_png": png(gray), f"b__{k}_png": png(deep)})
    data = load(str(tmp_path))
    assert data.pool.shape[1:] == (1, 8, 8)
    assert set(np.unique(data.pool[data.pool_labels == "b"])) == {50}
    put(tmp_path, a__colour_png=png(np.full((8, 8, 3), 200, np.uint8)))
    data = load(str(tmp_path))
    assert data.pool.shape[1:] == (3, 8, 8)
    assert (data.pool[:, 0] == data.pool[:, 1]).all()


def test_a_photograph_on_its_side_is_turned(tmp_path):
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[0] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90° clockwise: the upper row becomes the right column
    for k in range(5):
        put(tmp_path, **{f"a__{k}_png": png(pixels, exif=exif), f"b__{k}_png": png(pixels)})
    data = load(str(tmp_path))
    assert (data.pool[data.pool_labels == "a"][:, :, :, -1] == 255).all()
    assert (data.pool[data.pool_labels == "b"][:, :, 0] == 255).all()


def test_decompression_bombs_are_unreadable(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    (folder / "cat" / "bomb.png").write_bytes(
        png(np.zeros((40, 40, 3), np.uint8))
    )  # over twice the limit: an error of Pillow
    (folder / "cat" / "large.png").write_bytes(
        png(np.zeros((25, 25, 3), np.uint8))
    )  # over the limit: a warning of Pillow
    data = load(str(folder))
    assert len(data.pool) + len(data.test) == 20
    assert all(f"cat/{name}.png (Image size" in data.notes[0] for name in ("bomb", "large"))
