import numpy as np
import pytest
from scipy.io import savemat

from ally.data.catalogue import load
from ally.data.catalogue.official_images import read_digits
from ally.errors import DataError


@pytest.fixture
def svhn(tmp_path):
    rng = np.random.default_rng(2)
    (tmp_path / "svhn").mkdir()
    for side, n in (("train", 5), ("test", 3)):
        X = rng.integers(0, 256, (32, 32, 3, n), dtype=np.uint8)
        y = np.asarray([10, 1, 9, 2, 10][:n], dtype=np.uint8)[:, None]
        savemat(tmp_path / "svhn" / f"{side}_32x32.mat", {"X": X, "y": y}, do_compression=True)
    return tmp_path


def test_svhn(svhn):
    data = load("svhn", svhn)
    assert data.pool.shape == (5, 3, 32, 32)
    assert data.test.shape == (3, 3, 32, 32)
    assert data.pool.dtype == np.uint8
    assert data.pool_labels.tolist() == [0, 1, 9, 2, 0]
    X = np.random.default_rng(2).integers(0, 256, (32, 32, 3, 5), dtype=np.uint8)
    for image, channel, row, column in ((0, 0, 0, 0), (4, 2, 31, 7), (2, 1, 3, 30)):
        assert data.pool[image, channel, row, column] == X[row, column, channel, image]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"X": np.zeros((32, 32, 3, 2), np.uint8)}, "fetch it again"),
        (
            {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.zeros((3, 1), np.uint8)},
            r"X \(32, 32, 3, 2\) uint8, y \(3, 1\)",
        ),
        ({"X": np.zeros((32, 32, 3, 2)), "y": np.ones((2, 1), np.uint8)}, "float64"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.asarray([[0], [1]], np.uint8)}, "holds the label 0"),
        ({"z": np.zeros(3)}, "neither X nor y"),
    ],
)
def test_odd_mat_files(tmp_path, content, message):
    savemat(tmp_path / "odd.mat", content)
    with pytest.raises(DataError, match=message):
        read_digits(tmp_path / "odd.mat")


@pytest.mark.parametrize("content", [b"", b"not matlab", b"MATLAB 5.0 MAT-file" + b"\0" * 200])
def test_damaged_mat_files(tmp_path, content):
    (tmp_path / "odd.mat").write_bytes(content)
    with pytest.raises(DataError, match=r"odd\.mat"):
        read_digits(tmp_path / "odd.mat")


@pytest.fixture
def stl(tmp_path):
    """65 labelled images in the official layout: 5 train and 8 test ones of each of five classes."""
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    for side, n, seed in (("train", 25, 3), ("test", 40, 4)):
        upright = np.random.default_rng(seed).integers(0, 256, (n, 3, 96, 96), dtype=np.uint8)
        with (folder / f"{side}_X.bin").open("wb") as out:
            for image in upright:
                for channel in image:
                    for column in channel.T:
                        out.write(column.tobytes())
        (folder / f"{side}_y.bin").write_bytes(bytes(1 + k % 5 for k in range(n)))
    return tmp_path


def test_stl_images_stand_upright_and_are_split_by_class(stl):
    data = load("stl10", stl)
    upright = np.concatenate(
        [np.random.default_rng(s).integers(0, 256, (n, 3, 96, 96), dtype=np.uint8) for n, s in ((25, 3), (40, 4))]
    )
    labels = np.concatenate([1 + np.arange(25) % 5, 1 + np.arange(40) % 5])
    known = {image.tobytes(): label for image, label in zip(upright, labels, strict=True)}
    got = [*zip(data.pool, data.pool_labels, strict=True), *zip(data.test, data.test_labels, strict=True)]
    assert len({image.tobytes() for image, _ in got}) == 65
    assert all(known[image.tobytes()] == label for image, label in got)
    assert np.bincount(data.test_labels).tolist() == [0, 2, 2, 2, 2, 2]  # 2 of 13 in every class
    assert "55 + 10" in data.notes[0]
    np.testing.assert_array_equal(load("stl10", stl).test, data.test)


def test_damaged_stl_files(stl):
    images, labels = (stl / "stl10_binary" / f"train_{kind}.bin" for kind in "Xy")
    whole = labels.read_bytes()
    labels.write_bytes(b"\x0b" + whole[1:])
    with pytest.raises(DataError, match="holds the label 11"):
        load("stl10", stl)
    labels.write_bytes(whole[:-1])
    with pytest.raises(DataError, match="bytes for 24 labels"):
        load("stl10", stl)
    images.unlink()
    with pytest.raises(DataError, match=r"missing: stl10_binary/train_X.bin\); run: ally datasets fetch stl10"):
        load("stl10", stl)
