"""The official formats of image sets: MNIST (idx), CIFAR-10 (batches), SVHN (Matlab), STL-10 (plain bytes)."""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from ally.data.catalogue.batches import read_python_batch
from ally.data.catalogue.dataset import Parts
from ally.data.catalogue.places import locate
from ally.data.catalogue.splits import holdout
from ally.data.size_limits import ensure_unpacked_fits
from ally.errors import DataError
from ally.types import AnyArray

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def read_mnist(folder: Path) -> Parts:
    """60 000 training images as the pool, 10 000 test images; (n, 1, 28, 28)."""
    images, labels, test_images, test_labels = (
        read_idx(locate(folder, f"mnist/{name}.gz", f"mnist/{name}")) for name in MNIST
    )
    for name, side, y in ((MNIST[0], images, labels), (MNIST[2], test_images, test_labels)):
        if side.ndim != 3 or y.ndim != 1 or len(side) != len(y):
            raise DataError(f"{name} has shape {side.shape} and its labels {y.shape}; fetch the data set again")
    return Parts(images[:, None], labels.astype(np.int64), test_images[:, None], test_labels.astype(np.int64))


def read_idx(path: Path) -> AnyArray:
    """The array in an idx file: a big-endian header of type and sizes, then the values; plain or gzipped. Its length is
    checked against its header."""
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    try:
        with path.open("rb") as raw:
            return _parse_idx(gzip.GzipFile(fileobj=raw) if zipped else raw, path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged ({error}); fetch it again") from error


def _parse_idx(stream: io.BufferedIOBase, path: Path) -> AnyArray:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in IDX_TYPES or not magic[3]:
        raise DataError(
            f"{path} begins with {magic.hex() or 'nothing'}, not with an idx header (such as 00000803); fetch it again"
        )
    header = stream.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise DataError(f"{path} ends within its header; fetch it again")
    shape = struct.unpack(f">{magic[3]}I", header)
    dtype = np.dtype(IDX_TYPES[magic[2]])
    wanted = math.prod(shape) * dtype.itemsize
    ensure_unpacked_fits(path, wanted, path.stat().st_size)
    data = stream.read(wanted + 1)
    if len(data) != wanted:
        raise DataError(
            f"{path} holds {len(data)} bytes of values and its header {shape} says {wanted}; fetch it again"
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))


CIFAR_SHAPE = (3, 32, 32)
CIFAR_TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
CIFAR_BINARY, CIFAR_PYTHON = "cifar-10-batches-bin", "cifar-10-batches-py"


def read_cifar10(folder: Path) -> Parts:
    """The available training batches as the pool, and the test batch; (n, 3, 32, 32). A note says which batches are
    missing."""
    here = {name: path for name in (*CIFAR_TRAIN, "test_batch") if (path := _cifar_place(folder, name)) is not None}
    train = [name for name in CIFAR_TRAIN if name in here]
    if "test_batch" not in here or not train:
        raise DataError(
            f"{folder / CIFAR_BINARY} needs test_batch.bin and a training batch; run: ally datasets fetch cifar10"
        )
    images, labels = zip(*(read_batch(here[name]) for name in train), strict=True)
    pool, pool_labels = np.concatenate(images), np.concatenate(labels)
    notes: list[str] = []
    if len(train) < len(CIFAR_TRAIN):
        gone = ", ".join(name for name in CIFAR_TRAIN if name not in here)
        notes.append(
            f"only {len(train)} of the 5 training batches of CIFAR-10 are here (missing: {gone}): {len(pool)} of "
            "50000 images"
        )
    return Parts(pool, pool_labels, *read_batch(here["test_batch"]), tuple(notes))


def _cifar_place(folder: Path, name: str) -> Path | None:
    places = (folder / CIFAR_BINARY / f"{name}.bin", folder / CIFAR_PYTHON / name)
    return next((path for path in places if path.is_file()), None)


def read_batch(path: Path) -> tuple[AnyArray, AnyArray]:
    """Images (n, 3, 32, 32) and labels (n,) of one batch: binary (a label byte and 3072 channel-major bytes per row),
    or a Python batch (read by `batches.py`)."""
    if path.suffix == ".bin":
        raw = np.fromfile(path, np.uint8)
        if not len(raw) or len(raw) % 3073:
            raise DataError(
                f"{path} has {len(raw)} bytes, which is not a multiple of 3073 (a label and 3×32×32 pixels); fetch it "
                "again"
            )
        rows = raw.reshape(-1, 3073)
        labels, pixels = rows[:, 0].astype(np.int64), rows[:, 1:]
    else:
        pixels, labels = read_python_batch(path)
        if pixels.shape != (len(labels), 3072):
            raise DataError(f"{path} has pixels of shape {pixels.shape} and {len(labels)} labels; fetch it again")
    if len(labels) and not 0 <= labels.min() <= labels.max() <= 9:
        raise DataError(
            f"{path} holds the label {labels[(labels < 0) | (labels > 9)][0]}; CIFAR-10 has the labels 0 to 9: fetch "
            "it again"
        )
    return np.ascontiguousarray(pixels).reshape(-1, *CIFAR_SHAPE), labels


def read_svhn(folder: Path) -> Parts:
    """73 257 training images as the pool, 26 032 test images; (n, 3, 32, 32). The extra images are not used."""
    sides = [read_digits(locate(folder, f"svhn/{side}_32x32.mat")) for side in ("train", "test")]
    return Parts(*sides[0], *sides[1])


def read_digits(path: Path) -> tuple[AnyArray, AnyArray]:
    """Images (n, 3, 32, 32) and digits 0 to 9 of a Matlab file with X (32, 32, 3, n) and y (n, 1), where the digit 0 is
    written as 10."""
    from scipy.io import loadmat, whosmat

    try:
        held = {name: math.prod(shape) for name, shape, _ in whosmat(str(path)) if name in ("X", "y")}
        ensure_unpacked_fits(path, sum(held.values()), path.stat().st_size)
        content = loadmat(str(path), variable_names=["X", "y"])
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error
    except Exception as error:  # the parser raises many kinds on damaged files
        raise DataError(f"{path} is not a Matlab file of SVHN ({error}); fetch it again") from error
    X, y = content.get("X"), content.get("y")
    if (
        X is None
        or y is None
        or X.dtype != np.uint8
        or X.shape[:3] != (32, 32, 3)
        or X.ndim != 4
        or y.size != X.shape[3]
    ):
        met = ", ".join(
            f"{name} {value.shape} {value.dtype}" for name, value in (("X", X), ("y", y)) if value is not None
        )
        raise DataError(
            f"{path} holds {met or 'neither X nor y'}; SVHN has X (32, 32, 3, n) of bytes and y (n, 1): fetch it again"
        )
    digits = y.reshape(-1).astype(np.int64)
    if digits.size and not 1 <= digits.min() <= digits.max() <= 10:
        raise DataError(
            f"{path} holds the label {digits[(digits < 1) | (digits > 10)][0]}; SVHN has the labels 1 to 10: fetch it "
            "again"
        )
    return np.ascontiguousarray(X.transpose(3, 2, 0, 1)), digits % 10


STL_FOLDER = "stl10_binary"
STL_SIDE = 96
STL_TEST = 2000
"""Test images of the paper, out of the 13 000 labelled ones; the other 11 000 are the pool."""


def read_stl10(folder: Path) -> Parts:
    """The labelled images, official training before official test, split again in a fixed order: 2000 of the 13 000 are
    the test set, equally many per class."""
    sides = [read_stl_side(folder, side) for side in ("train", "test")]
    images, labels = (np.concatenate(parts) for parts in zip(*sides, strict=True))
    pool, test = holdout(len(images), labels, STL_TEST / 13_000)
    note = f"STL-10's labelled images are split as in the paper: {len(pool)} + {len(test)}, the same for every seed"
    return Parts(images[pool], labels[pool], images[test], labels[test], (note,))


def read_stl_side(folder: Path, side: str) -> tuple[AnyArray, AnyArray]:
    """Images (n, 3, 96, 96), upright, and labels (n,) of ``train`` or ``test``; the file stores each channel column by
    column, and labels as 1 to 10."""
    images, labels = locate(folder, f"{STL_FOLDER}/{side}_X.bin"), locate(folder, f"{STL_FOLDER}/{side}_y.bin")
    X, y = np.fromfile(images, np.uint8), np.fromfile(labels, np.uint8)
    if not len(X) or len(X) != len(y) * 3 * STL_SIDE * STL_SIDE:
        raise DataError(
            f"{images} has {len(X)} bytes for {len(y)} labels; {len(y) * 3 * STL_SIDE**2} are needed: fetch it again"
        )
    if not 1 <= y.min() <= y.max() <= 10:
        raise DataError(
            f"{labels} holds the label {y[(y < 1) | (y > 10)][0]}; STL-10 has the labels 1 to 10: fetch it again"
        )
    return np.ascontiguousarray(X.reshape(-1, 3, STL_SIDE, STL_SIDE).transpose(0, 1, 3, 2)), y.astype(np.int64)
