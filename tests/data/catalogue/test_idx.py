import gzip

import numpy as np
import pytest

from ally.data.catalogue import load
from ally.data.catalogue.official_images import read_idx
from ally.errors import DataError


def test_mnist_from_official_files(mnist_folder):
    data = load("mnist", mnist_folder)
    assert (data.kind, data.task) == ("images", "classification")
    assert data.pool.shape == (6, 1, 28, 28)
    assert data.test.shape == (4, 1, 28, 28)
    assert data.pool.dtype == np.uint8
    assert data.pool_labels.tolist() == [0, 1, 2, 3, 4, 5]
    first = gzip.decompress((mnist_folder / "mnist" / "train-images-idx3-ubyte.gz").read_bytes())[16 : 16 + 784]
    assert data.pool[0].tobytes() == first


def test_plain_files_serve_as_well(mnist_folder):
    before = load("mnist", mnist_folder)
    for path in list((mnist_folder / "mnist").iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    np.testing.assert_array_equal(load("mnist", mnist_folder).pool, before.pool)


@pytest.mark.parametrize(("code", "dtype"), [(0x09, ">i1"), (0x0B, ">i2"), (0x0C, ">i4"), (0x0D, ">f4"), (0x0E, ">f8")])
def test_every_type_of_value(tmp_path, write, code, dtype):
    values = np.asarray([[1, -2, 3], [4, 5, -6]], dtype=dtype)
    (tmp_path / "x").write_bytes(write.idx(values, code))
    read = read_idx(tmp_path / "x")
    np.testing.assert_array_equal(read, values)
    assert read.dtype.isnative


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda b: b[:-1], "holds 11 bytes of values and its header"),
        (lambda b: b + b"x", "holds 13 bytes"),
        (lambda b: b"\x01" + b[1:], "begins with 01000802"),
        (lambda b: b[:2] + b"\x07" + b[3:], "begins with 00000702"),
        (lambda b: b[:6], "ends within its header"),
        (lambda b: b"", "begins with nothing"),
        (lambda b: gzip.compress(b)[:-6], "is damaged"),
        (lambda b: gzip.compress(b)[:20] + b"\0\0\0\0" + gzip.compress(b)[24:], "is damaged"),
    ],
)
def test_damaged_files(tmp_path, write, spoil, message):
    (tmp_path / "x").write_bytes(spoil(write.idx(np.arange(12, dtype=np.uint8).reshape(3, 4))))
    with pytest.raises(DataError, match=message):
        read_idx(tmp_path / "x")


def test_images_and_labels_of_different_number(mnist_folder, write):
    (mnist_folder / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(write.gzip(write.idx(np.zeros(3, np.uint8))))
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte has shape \(4, 28, 28\) and its labels \(3,\)"):
        load("mnist", mnist_folder)
