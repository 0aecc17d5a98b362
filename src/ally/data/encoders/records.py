"""An append-only file of fixed-size records that survives a kill in the middle of a write.

The file begins with a header that says what it holds. Each record ends with a checksum. A record that was only half
written is cut off before the next one is added; a record whose checksum is wrong is passed over. Whoever writes or
looks for new records holds a lock, so several processes can use one file. Nothing here is precious: lost records are
recomputed.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ally.errors import DataError
from ally.types import AnyArray, BoolArray

Field: TypeAlias = tuple[str, str] | tuple[str, str, tuple[int, ...]]
HEADER = 512
"""Bytes before the first record."""
MAGIC = b"ally records 1\n"
SEED = np.uint32(0x9E3779B9)
VERIFIED_AT_ONCE = 4096
"""Records whose checksums are compared at a time."""


class Records:
    """`fields` are those of a numpy dtype without the checksum; together they take a multiple of four bytes."""

    def __init__(self, path: Path, about: str, fields: Sequence[Field]) -> None:
        self.path = path
        self.dtype = np.dtype([*fields, ("check", "<u4")])
        assert self.dtype.itemsize % 4 == 0
        self._header = (MAGIC + about.encode()[: HEADER - len(MAGIC) - 1]).ljust(HEADER - 1, b" ") + b"\n"
        self._seen = 0
        with _reported(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked(fcntl.LOCK_EX):
                self._file = self._opened()

    def new(self) -> tuple[int, AnyArray, BoolArray]:
        """The number of the first record added since the last call (by anyone), those records, and which are sound."""
        with self._locked(fcntl.LOCK_SH):
            count = max(0, os.fstat(self._file).st_size - HEADER) // self.dtype.itemsize
        first, self._seen = self._seen, max(count, self._seen)
        records = self.all()[first:]
        return first, records, _sound(records)

    def all(self) -> AnyArray:
        """The records seen so far, as a memory map that stays as it is."""
        if not self._seen:
            return np.empty(0, self.dtype)
        with os.fdopen(os.dup(self._file), "rb") as stream:
            return np.memmap(stream, self.dtype, "r", HEADER, (self._seen,))

    def append(self, records: AnyArray) -> None:
        """Adds records; their checksums are filled in."""
        records["check"] = _checksums(records)
        with _reported(self.path), self._locked(fcntl.LOCK_EX):
            size = os.fstat(self._file).st_size
            whole = size - (size - HEADER) % self.dtype.itemsize
            if whole != size:
                os.ftruncate(self._file, whole)
            try:
                _write(self._file, records.tobytes(), whole)
            except OSError:
                os.ftruncate(self._file, whole)
                raise

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _opened(self) -> int:
        """The file, made anew if its header is not this one."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if os.pread(file, HEADER, 0) == self._header:
            return file
        # Not emptied in place: another process may have it mapped.
        os.close(file)
        self.path.unlink()
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _write(file, self._header, 0)
        return file

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        lock = os.open(self.path.with_name("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, how)
            yield
        finally:
            os.close(lock)


def _write(file: int, content: bytes, at: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written


def _checksums(records: AnyArray) -> AnyArray:
    """A weighted sum of each record's words (n,) uint32; that of a record of zeros is not zero."""
    words = np.ascontiguousarray(records).view(np.uint32).reshape(len(records), -1)[:, :-1]
    weights = np.arange(1, 2 * words.shape[1], 2, dtype=np.uint32) * SEED
    found: AnyArray = (words * weights).sum(axis=1, dtype=np.uint32) ^ SEED
    return found


def _sound(records: AnyArray) -> BoolArray:
    found = np.empty(len(records), np.bool_)
    for start in range(0, len(records), VERIFIED_AT_ONCE):
        some = records[start : start + VERIFIED_AT_ONCE]
        found[start : start + VERIFIED_AT_ONCE] = _checksums(some) == some["check"]
    return found


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = (
            "make room on the disk"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else "check the disk and the permissions of its folder"
        )
        raise DataError(f"{path} cannot be written ({error.strerror}); {remedy} and try again") from error
