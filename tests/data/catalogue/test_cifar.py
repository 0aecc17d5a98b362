import os
import pickle
import struct

import numpy as np
import pytest

from ally.data.catalogue import load
from ally.data.catalogue.batches import read_python_batch
from ally.data.catalogue.official_images import read_batch
from ally.errors import DataError


def python2_batch(pixels, labels):
    """The bytes that Python 2's cPickle (protocol 2) wrote for the official batches: a dict of strings, a list and an
    array."""

    def text(value):
        return b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + struct.pack("<i", len(value)) + value

    def whole(value):
        return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)

    dtype = (
        b"cnumpy\ndtype\n("
        + text(b"u1")
        + b"K\x00K\x01tR(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85"
        + text(b"b")
        + b"tR(K\x01"
        + b"".join(map(whole, pixels.shape))
        + b"\x86"
        + dtype
        + b"\x89"
        + text(pixels.tobytes())
        + b"tb"
    )
    names = b"](" + b"".join(text(f"image_{k}.png".encode()) for k in range(len(labels))) + b"e"
    listed = b"](" + b"".join(map(whole, labels)) + b"e"
    fields = {b"batch_label": text(b"training batch 1 of 5"), b"labels": listed, b"data": array, b"filenames": names}
    return b"\x80\x02}(" + b"".join(text(key) + value for key, value in fields.items()) + b"u."


@pytest.fixture
def batch():
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (7, 3072), dtype=np.uint8), [3, 0, 9, 1, 1, 5, 7]


def binary(pixels, labels):
    return np.column_stack([np.asarray(labels, np.uint8), pixels]).tobytes()


def test_binary_and_python_batches_say_the_same(tmp_path, batch):
    (tmp_path / "a.bin").write_bytes(binary(*batch))
    (tmp_path / "python2").write_bytes(python2_batch(*batch))
    (tmp_path / "python3").write_bytes(pickle.dumps({"data": batch[0], "labels": batch[1]}, protocol=2))
    columns = np.asfortranarray(batch[0])
    (tmp_path / "columns").write_bytes(pickle.dumps({"data": columns, "labels": batch[1]}, protocol=2))
    for name in ("a.bin", "python2", "python3", "columns"):
        images, labels = read_batch(tmp_path / name)
        assert images.shape == (7, 3, 32, 32)
        assert images.dtype == np.uint8
        np.testing.assert_array_equal(images.reshape(7, -1), batch[0])
        assert labels.tolist() == batch[1]


def test_the_hand_written_pickle_is_a_real_one(batch):
    content = pickle.loads(python2_batch(*batch), encoding="bytes")  # our own bytes, two lines above
    np.testing.assert_array_equal(content[b"data"], batch[0])
    assert content[b"labels"] == batch[1]


def test_channels_are_red_green_blue_row_by_row(tmp_path):
    pixels = np.zeros((1, 3072), np.uint8)
    pixels[0, 1024 + 32 * 4 + 6] = 200  # green, row 4, column 6
    (tmp_path / "a.bin").write_bytes(binary(pixels, [0]))
    assert np.argwhere(read_batch(tmp_path / "a.bin")[0]).tolist() == [[0, 1, 4, 6]]


class Payload:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_hostile_pickle_runs_nothing(tmp_path, batch, protocol):
    proof = tmp_path / "proof"
    hostile = {"data": batch[0], "labels": batch[1], "also": Payload(os.system, f"touch {proof}")}
    (tmp_path / "bad").write_bytes(pickle.dumps(hostile, protocol=protocol))
    with pytest.raises(DataError, match="nothing in it was run"):
        read_python_batch(tmp_path / "bad")
    assert not proof.exists()
    pickle.loads((tmp_path / "bad").read_bytes())
    assert proof.exists(), "the payload itself works"


@pytest.mark.parametrize(
    "call",
    [
        (eval, "1"),
        (getattr, "a", "b"),
        (__import__, "os"),
        (open, "x"),
        (np.load, "x"),
        (np.frombuffer, b"abc"),
    ],
)
def test_other_functions_are_refused_by_name(tmp_path, call):
    (tmp_path / "bad").write_bytes(pickle.dumps(Payload(*call), protocol=2))
    with pytest.raises(DataError, match="which a batch of images never needs"):
        read_python_batch(tmp_path / "bad")


@pytest.mark.parametrize(
    "content",
    [
        [1, 2],
        {"labels": [1]},
        {"data": b"x", "labels": [1]},
        {"labels": "abc"},
        {"labels": [1.5]},
        {"data": np.zeros((1, 3072)), "labels": [1]},
        {"data": np.zeros((1, 3071), np.uint8), "labels": [1]},
        {"data": np.zeros((2, 3072), np.uint8), "labels": [1]},
        {"data": np.zeros((1, 3072), np.uint8), "labels": [10]},
        {"data": np.zeros((1, 3072), np.uint8), "labels": [-1]},
    ],
)
def test_pickles_that_are_no_batch(tmp_path, content):
    (tmp_path / "odd").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(DataError, match="odd"):
        read_batch(tmp_path / "odd")


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"garbage", b"\x80\x02}q\x00."])
def test_broken_pickles(tmp_path, content):
    (tmp_path / "odd").write_bytes(content)
    with pytest.raises(DataError, match="fetch it again"):
        read_batch(tmp_path / "odd")


def test_broken_binaries(tmp_path, batch):
    (tmp_path / "cut.bin").write_bytes(binary(*batch)[:-5])
    with pytest.raises(DataError, match="not a multiple of 3073"):
        read_batch(tmp_path / "cut.bin")
    (tmp_path / "odd.bin").write_bytes(binary(batch[0], [10, 0, 0, 0, 0, 0, 0]))
    with pytest.raises(DataError, match="holds the label 10"):
        read_batch(tmp_path / "odd.bin")


def test_missing_batches_are_noted(tmp_path, batch):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    with pytest.raises(
        DataError, match=r"missing: cifar-10-batches-bin/test_batch.bin\); run: ally datasets fetch cifar10"
    ):
        load("cifar10", tmp_path)
    (folder / "test_batch.bin").write_bytes(binary(*batch))
    with pytest.raises(DataError, match=r"needs test_batch\.bin and a training batch"):
        load("cifar10", tmp_path)
    (folder / "data_batch_2.bin").write_bytes(binary(*batch))
    data = load("cifar10", tmp_path)
    assert len(data.pool) == 7
    assert data.notes == (
        "only 1 of the 5 training batches of CIFAR-10 are here (missing: data_batch_1, data_batch_3, data_batch_4, "
        "data_batch_5): 7 of 50000 images",
    )
    for number in range(1, 6):
        (folder / f"data_batch_{number}.bin").write_bytes(binary(*batch))
    assert load("cifar10", tmp_path).notes == ()


def test_python_batches_are_found(tmp_path, batch):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in ("test_batch", *(f"data_batch_{number}" for number in range(1, 6))):
        (folder / name).write_bytes(python2_batch(*batch))
    data = load("cifar10", tmp_path)
    assert data.pool.shape == (35, 3, 32, 32)
    assert data.notes == ()
