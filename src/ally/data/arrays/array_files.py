"""Arrays out of .npy and .npz files. What a header claims is compared with what is there before any memory is taken,
and nothing is unpickled."""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ally.data.archive_files import open_archive
from ally.data.damage import refuse_damage
from ally.data.paths import ensure_readable, open_regular
from ally.data.size_limits import ensure_unpacked_fits
from ally.types import AnyArray

LONGEST_HEADER = 10_000
"""Bytes; numpy writes about a hundred, and parses them as Python."""
LENGTHS = {1: "<H", 2: "<I"}
"""By version, how the length of the header is written. Later versions are for tables of records."""
ROW = 64
"""Bytes that a sample takes besides its numbers: its id, its label and its place."""


class ArrayHeader(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    start: int
    """Where the numbers begin."""

    @property
    def size(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def memory(self) -> int:
        """Bytes that a learner takes for them, which reads them in single precision."""
        return max(self.size, 4 * math.prod(self.shape)) + ROW * (self.shape[0] if self.shape else 1)


def map_array(path: Path) -> AnyArray:
    """The numbers of an .npy file, which stay on disk."""
    ensure_readable(path)
    with refuse_damage(
        f"{path} is not a complete .npy file of numbers", "save it again with numpy.save, without objects"
    ):
        with open_regular(path) as stream:
            read_header(stream, os.fstat(stream.fileno()).st_size)
        array: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
        return array


class ArrayArchive:
    """The arrays of an .npz file by name. All that are read from it count against one limit."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive = archive
        self._path = path
        self._memory = 0
        self.names = tuple(name.removesuffix(".npy") for name in archive.namelist())

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def read(self, name: str) -> AnyArray:
        member = self._archive.getinfo(f"{name}.npy")
        with self._archive.open(member) as stream:
            self._memory += read_header(stream, member.file_size).memory
        ensure_unpacked_fits(self._path, self._memory, self._path.stat().st_size)
        with self._archive.open(member) as stream:
            array: AnyArray = np.lib.format.read_array(stream, allow_pickle=False)
            return array


@contextmanager
def open_arrays(path: Path) -> Iterator[ArrayArchive]:
    ensure_readable(path)
    with open_archive(path, "an .npz file of arrays") as archive:
        yield ArrayArchive(archive, path)


def read_header(stream: IO[bytes], size: int) -> ArrayHeader:
    """The header of an array of `size` bytes in all; raises `ValueError` unless its numbers are exactly the rest."""
    start = stream.read(8)
    version = start[6] if len(start) == 8 and start.startswith(b"\x93NUMPY") else 0
    if version not in LENGTHS:
        raise ValueError("it does not begin like an array of numbers")
    start += stream.read(struct.calcsize(LENGTHS[version]))
    (length,) = struct.unpack(LENGTHS[version], start[8:])
    if length > LONGEST_HEADER:
        raise ValueError(f"its header claims {length} bytes; at most {LONGEST_HEADER} are read")
    whole = io.BytesIO(start + stream.read(length))
    whole.seek(8)
    read = np.lib.format.read_array_header_1_0 if version == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(whole)
    header = ArrayHeader(shape, dtype, len(start) + length)
    if dtype.hasobject or dtype.names is not None or not dtype.itemsize:
        raise ValueError(f"it holds {dtype}, not numbers or texts")
    if any(edge < 0 for edge in shape) or (math.prod(shape[1:]) == 0 and shape[:1] != (0,)):
        raise ValueError(f"it claims the shape {shape}")
    if header.start + header.size != size:
        raise ValueError(f"its header says {header.size} bytes of numbers and there are {size - header.start}")
    return header
