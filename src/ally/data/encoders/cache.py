"""A cache of vectors, looked up by the content they were computed from.

In a cache folder there is one file of vectors for each encoder identity, and one file that remembers which content a
photo had when it was last looked at, so that a photo is not read again while its size and time stay.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ally.data.encoders.base import Vectors
from ally.data.encoders.records import HEADER, Records
from ally.types import AnyArray, IntArray

Keys = NDArray[np.uint64]
MERGED = 65536
"""New keys that are looked up one by one before they are sorted in with the others."""


def content_key(content: bytes) -> int:
    """64 bits of a content: two of a million share one with probability below 1e-7."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


class _KeyIndex:
    """Record numbers by key; of equal keys the last one counts."""

    def __init__(self) -> None:
        self._keys: Keys = np.empty(0, np.uint64)
        self._rows: IntArray = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    def add(self, keys: Keys, rows: IntArray) -> None:
        self._recent.update(zip(keys.tolist(), rows.tolist(), strict=True))
        if len(self._recent) > MERGED:
            recent = self._recent
            keep = ~np.isin(self._keys, np.fromiter(recent, np.uint64, len(recent)))
            every = np.concatenate([self._keys[keep], np.fromiter(recent, np.uint64, len(recent))])
            numbers = np.concatenate([self._rows[keep], np.fromiter(recent.values(), np.int64, len(recent))])
            order = np.argsort(every)
            self._keys, self._rows, self._recent = every[order], numbers[order], {}

    def find(self, keys: Keys) -> IntArray:
        """(n,) record numbers; -1 where there is none."""
        rows = np.full(len(keys), -1, np.int64)
        if len(self._keys):
            at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            rows = np.where(self._keys[at] == keys, self._rows[at], -1)
        if self._recent:
            rows = np.asarray(
                [self._recent.get(key, row) for key, row in zip(keys.tolist(), rows.tolist(), strict=True)], np.int64
            )
        return rows


class VectorCache:
    """The vectors of one encoder in `folder`: (n, width) float32, by content key."""

    def __init__(self, folder: Path, identity: str, width: int) -> None:
        self.path = vectors_file(folder, identity)
        self._width = width
        self._records = Records(self.path, f"{width} {identity}", _fields(width))
        self._found = _KeyIndex()
        self._map: AnyArray = np.empty(0, self._records.dtype)

    def find(self, keys: Keys) -> IntArray:
        """(n,) numbers of the vectors, -1 where there is none yet; those that others made meanwhile are found too."""
        first, records, sound = self._records.new()
        if len(records):
            rows = first + np.flatnonzero(sound)
            self._found.add(records["key"][sound], rows)
            self._map = self._records.all()
        return self._found.find(keys)

    def read(self, rows: IntArray) -> Vectors:
        """(n, width); zeros for -1."""
        vectors = np.zeros((len(rows), self._width), np.float32)
        there = rows >= 0
        vectors[there] = self._map["vector"][rows[there]]
        return vectors

    def add(self, keys: Keys, vectors: Vectors) -> None:
        records = np.empty(len(keys), self._records.dtype)
        records["key"], records["vector"] = keys, vectors
        self._records.append(records)

    def close(self) -> None:
        self._map = np.empty(0, self._records.dtype)
        self._records.close()


class Stamps:
    """The content key of a file by its place, for as long as its stamp (size and time) stays."""

    def __init__(self, folder: Path) -> None:
        self._records = Records(
            folder / "photos.stamps", "stamps", [("place", "<u8"), ("stamp", "<u8"), ("key", "<u8"), ("spare", "<u4")]
        )
        self._found = _KeyIndex()
        self._map: AnyArray = np.empty(0, self._records.dtype)

    def find(self, places: Keys, stamps: Keys) -> tuple[Keys, NDArray[np.bool_]]:
        """Content keys (n,) and which of them are known."""
        first, records, sound = self._records.new()
        if len(records):
            self._found.add(records["place"][sound], first + np.flatnonzero(sound))
            self._map = self._records.all()
        rows = self._found.find(places)
        there = rows >= 0
        keys = np.zeros(len(places), np.uint64)
        there[there] = self._map["stamp"][rows[there]] == stamps[there]
        keys[there] = self._map["key"][rows[there]]
        return keys, there

    def add(self, places: Keys, stamps: Keys, keys: Keys) -> None:
        records = np.zeros(len(keys), self._records.dtype)
        records["place"], records["stamp"], records["key"] = places, stamps, keys
        self._records.append(records)

    def close(self) -> None:
        self._map = np.empty(0, self._records.dtype)
        self._records.close()


def vectors_file(folder: Path, identity: str) -> Path:
    words = re.sub("[^A-Za-z0-9.-]+", "-", " ".join(identity.split()[:2]))[:40].strip("-.")
    return folder / f"{words}-{content_key(identity.encode()):016x}.vectors"


def kept_vectors(folder: Path, identity: str, width: int) -> int:
    """How many vectors are in the file, without opening it."""
    try:
        size = vectors_file(folder, identity).stat().st_size
    except OSError:
        return 0
    return max(0, size - HEADER) // (np.dtype(_fields(width)).itemsize + 4)


def _fields(width: int) -> list[tuple[str, str] | tuple[str, str, tuple[int, ...]]]:
    return [("key", "<u8"), ("vector", "<f4", (width,))]


def keys_of(values: Sequence[int]) -> Keys:
    return np.asarray(values, dtype=np.uint64)
