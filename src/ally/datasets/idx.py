"""The idx format of MNIST: a big-endian header of type and sizes, then the values; plain or gzipped."""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from ally.datasets.dataset import Parts
from ally.datasets.places import locate
from ally.errors import DataError
from ally.types import AnyArray

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
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
    """The array in an idx file. Its length is checked against its header."""
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    try:
        with path.open("rb") as raw:
            return _parse(gzip.GzipFile(fileobj=raw) if zipped else raw, path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged ({error}); fetch it again") from error


def _parse(stream: io.BufferedIOBase, path: Path) -> AnyArray:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES or not magic[3]:
        raise DataError(
            f"{path} begins with {magic.hex() or 'nothing'}, not with an idx header (such as 00000803); fetch it again"
        )
    header = stream.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise DataError(f"{path} ends within its header; fetch it again")
    shape = struct.unpack(f">{magic[3]}I", header)
    dtype = np.dtype(TYPES[magic[2]])
    wanted = math.prod(shape) * dtype.itemsize
    data = stream.read()
    if len(data) != wanted:
        raise DataError(
            f"{path} holds {len(data)} bytes of values and its header {shape} says {wanted}; fetch it again"
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))
