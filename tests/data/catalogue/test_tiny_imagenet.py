import zipfile

import numpy as np
import pytest

from ally.data.catalogue import load
from ally.errors import DataError

CLASSES = ("n01443537", "n01629819", "n01641577")


@pytest.fixture
def members(write):
    """The files of the official zip, with three classes, two training and one validation image each; one is gray, as
    some are."""
    files = {"tiny-imagenet-200/wnids.txt": "\n".join(CLASSES).encode()}
    lines = []
    for k, name in enumerate(CLASSES):
        for number in range(2):
            gray = "L" if (k, number) == (1, 1) else "RGB"
            files[f"tiny-imagenet-200/train/{name}/images/{name}_{number}.JPEG"] = write.jpeg(
                10 * k + number, mode=gray
            )
        files[f"tiny-imagenet-200/train/{name}/{name}_boxes.txt"] = b"n_0.JPEG\t0\t10\t63\t58\n"
        files[f"tiny-imagenet-200/val/images/val_{k}.JPEG"] = write.jpeg(100 + k)
        lines.append(f"val_{k}.JPEG\t{CLASSES[-1 - k]}\t0\t32\t44\t62\n")
    files["tiny-imagenet-200/val/val_annotations.txt"] = "".join(lines).encode()
    files["tiny-imagenet-200/test/images/test_0.JPEG"] = write.jpeg(200)
    return files


def as_zip(path, files):
    with zipfile.ZipFile(path, "w") as out:
        for name, content in files.items():
            out.writestr(name, content)


def as_folder(root, files):
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def test_zip_and_folder_say_the_same(tmp_path, members):
    (tmp_path / "a").mkdir()
    as_zip(tmp_path / "a" / "tiny-imagenet-200.zip", members)
    as_folder(tmp_path / "b", members)
    zipped, unpacked = load("tiny-imagenet", tmp_path / "a"), load("tiny-imagenet", tmp_path / "b")
    for data in (zipped, unpacked):
        assert data.pool.shape == (6, 3, 64, 64)
        assert data.pool.dtype == np.uint8
        assert data.pool_labels.tolist() == [name for name in CLASSES for _ in range(2)]
        assert data.test_labels.tolist() == list(CLASSES[::-1])
        assert "validation images are the test set" in data.notes[0]
    np.testing.assert_array_equal(zipped.pool, unpacked.pool)
    np.testing.assert_array_equal(zipped.test, unpacked.test)
    gray = zipped.pool[3]
    assert (gray[0] == gray[1]).all()
    assert (gray[0] == gray[2]).all()


@pytest.mark.parametrize(
    "name", ["../outside.JPEG", "/etc/outside.JPEG", "tiny-imagenet-200/../../x.JPEG", "..\\x.JPEG", "C:/x.JPEG"]
)
def test_members_that_climb_out_are_refused(tmp_path, members, name):
    as_zip(tmp_path / "tiny-imagenet-200.zip", {**members, name: b"x"})
    with pytest.raises(DataError, match="lies outside its folder"):
        load("tiny-imagenet", tmp_path)


def test_a_broken_image_is_named_and_left_out(tmp_path, members):
    broken = f"tiny-imagenet-200/train/{CLASSES[0]}/images/{CLASSES[0]}_1.JPEG"
    as_zip(tmp_path / "tiny-imagenet-200.zip", {**members, broken: b"\xff\xd8 not a picture"})
    data = load("tiny-imagenet", tmp_path)
    assert len(data.pool) == len(data.pool_labels) == 5
    assert data.pool_labels.tolist().count(CLASSES[0]) == 1
    assert any(f"1 of 6 images cannot be read and are left out: {broken}" in note for note in data.notes)


def test_damage(tmp_path, members):
    path = tmp_path / "tiny-imagenet-200.zip"
    path.write_bytes(b"PK not a zip")
    with pytest.raises(DataError, match="cannot be opened as a zip"):
        load("tiny-imagenet", tmp_path)
    as_zip(path, {**members, "tiny-imagenet-200/val/val_annotations.txt": b"val_0.JPEG\tn01443537\n"})
    with pytest.raises(DataError, match=r"val_1\.JPEG is not in val/val_annotations\.txt"):
        load("tiny-imagenet", tmp_path)
    as_zip(path, {**members, "tiny-imagenet-200/val/val_annotations.txt": b"nothing here\n"})
    with pytest.raises(DataError, match="line 1 of val/val_annotations"):
        load("tiny-imagenet", tmp_path)
    as_zip(path, {"tiny-imagenet-200/val/val_annotations.txt": b""})
    with pytest.raises(DataError, match="0 training and 0 validation images"):
        load("tiny-imagenet", tmp_path)


def test_the_subset_has_its_own_name(tmp_path, write):
    (tmp_path / "tiny-imagenet-32").mkdir()
    files = {
        f"{side}/{name}/{side}_{k}.JPEG": write.jpeg(k, side=32)
        for k, name in enumerate(CLASSES)
        for side in ("train", "val")
    }
    as_zip(
        tmp_path / "tiny-imagenet-32" / "tiny_imagenet32_subset.zip", {**files, "classes.tsv": b"n01443537\tgoldfish\n"}
    )
    data = load("tiny-imagenet-32", tmp_path)
    assert data.pool.shape == data.test.shape == (3, 3, 32, 32)
    assert data.test_labels.tolist() == list(CLASSES)
    assert "not comparable" in data.notes[0]
