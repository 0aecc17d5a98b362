import numpy as np
import pytest
from PIL import Image

from ally.data import open_source
from ally.data.catalogue import load
from ally.errors import DataError, InputError


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
    assert (data.name, data.kind, data.task) == (str(folder), "images", "classification")
    assert data.pool.shape == (16, 3, 32, 32)
    assert sorted(data.test_labels) == ["cat", "cat", "dog", "dog"]
    samples = open_source(folder, label="folder")
    known = {sample.id: sample.label for sample in samples.scan()}
    pixels = {samples.features([id]).read(np.arange(1)).tobytes(): label for id, label in known.items()}
    for image, label in [
        *zip(data.pool, data.pool_labels, strict=True),
        *zip(data.test, data.test_labels, strict=True),
    ]:
        assert pixels[image.tobytes()] == label


def test_unreadable_images_are_named_and_never_fatal(folder):
    (folder / "cat" / "broken.jpg").write_bytes(b"\xff\xd8\xff no")
    (folder / "dog" / "empty.png").write_bytes(b"")
    (folder / "dog" / "cut.png").write_bytes((folder / "dog" / "1.png").read_bytes()[:200])
    (folder / "notes.txt").write_text("no image")
    (folder / "stray.png").write_bytes((folder / "dog" / "1.png").read_bytes())
    (folder / "dog" / ".hidden.png").write_bytes(b"")
    data = load(str(folder))
    assert len(data.pool) + len(data.test) == 20
    assert any(
        note.startswith("3 samples cannot be read and are left out, such as cat/broken.jpg") for note in data.notes
    )
    assert "1 samples have no label and are left out" in data.notes


def test_an_image_that_breaks_in_the_middle_is_left_out(folder):
    """Its head and its end are those of an image: it is noticed when the pixels are read."""
    pixels = np.random.default_rng(0).integers(0, 255, (300, 300, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "cat" / "whole.jpg", quality=95)
    whole = (folder / "cat" / "whole.jpg").read_bytes()
    (folder / "cat" / "whole.jpg").write_bytes(whole[:20000] + whole[-2:])
    data = load(str(folder))
    assert len(data.pool) + len(data.test) in (20, 21)
    assert len(data.pool) == len(data.pool_labels)
    assert any("cat/whole.jpg" in note for note in data.notes) == (len(data.pool) + len(data.test) == 20)


def test_no_readable_image_is_an_error(tmp_path):
    put(tmp_path, a__x_png=b"", b__y_png=b"")
    with pytest.raises(DataError, match=r"has no image that can be read \(2 cannot be read: a/x\.png"):
        load(str(tmp_path))


def test_folders_that_hold_no_classes(tmp_path, write):
    with pytest.raises(DataError, match="there are no images in the folder"):
        load(str(tmp_path))
    put(tmp_path, x_png=write.jpeg(0, side=8))
    with pytest.raises(InputError, match=r"has no labels .*; put the images into one folder per class"):
        load(str(tmp_path))
    put(tmp_path, a__x_png=write.jpeg(0, side=8))
    with pytest.raises(DataError, match=r"every label of .* is a; a benchmark needs"):
        load(str(tmp_path))
    with pytest.raises(InputError, match="is no class of a folder of images"):
        load(str(tmp_path), label="y")


def test_an_official_split_is_kept(tmp_path, write):
    for side, n in (("train", 3), ("test", 2)):
        for kind in "ab":
            for k in range(n):
                put(tmp_path, **{f"{side}__{kind}__{k}_png": write.jpeg(k, side=8)})
    data = load(str(tmp_path))
    assert data.pool_labels.tolist() == list("aaabbb")
    assert data.test_labels.tolist() == list("aabb")
    assert "the folders train and test are the pool and the test set" in data.notes
    put(tmp_path, other__a__0_png=write.jpeg(0, side=8))
    assert set(load(str(tmp_path)).pool_labels) >= {"train", "test"}
