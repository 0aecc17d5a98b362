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
from ally.data.encoders.records import HEADER, Field, Records
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


class _KeyedRecords:
    """Records of a file by their first field, the key."""

    def __init__(self, path: Path, about: str, fields: Sequence[Field]) -> None:
        self.path = path
        self._records = Records(path, about, [("key", "<u8"), *fields])
        self._index = _KeyIndex()
        self._map: AnyArray = np.empty(0, self._records.dtype)

    def find(self, keys: Keys) -> IntArray:
        """(n,) record numbers, -1 where there is none yet; those that others made meanwhile are found too."""
        first, records, sound = self._records.new()
        if len(records):
            self._index.add(records["key"][sound], first + np.flatnonzero(sound))
            self._map = self._records.all()
        return self._index.find(keys)

    def _append(self, keys: Keys, **fields: AnyArray) -> None:
        records = np.zeros(len(keys), self._records.dtype)
        for name, values in {"key": keys, **fields}.items():
            records[name] = values
        self._records.append(records)

    def close(self) -> None:
        self._map = np.empty(0, self._records.dtype)
        self._records.close()


class VectorCache(_KeyedRecords):
    """The vectors of one encoder in `folder`: (n, width) float32, by content key."""

    def __init__(self, folder: Path, identity: str, width: int) -> None:
        super().__init__(vectors_file(folder, identity), f"{width} {identity}", [("vector", "<f4", (width,))])

    def read(self, rows: IntArray) -> Vectors:
        """(n, width); zeros for -1."""
        vectors = np.zeros((len(rows), *self._map["vector"].shape[1:]), np.float32)
        vectors[rows >= 0] = self._map["vector"][rows[rows >= 0]]
        return vectors

    def add(self, keys: Keys, vectors: Vectors) -> None:
        self._append(keys, vector=vectors)


class Stamps(_KeyedRecords):
    """The content key of a file by its path, for as long as its stamp (size and time) stays."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "photos.stamps", "stamps", [("stamp", "<u8"), ("content", "<u8"), ("spare", "<u4")])

    def find_contents(self, paths: Keys, stamps: Keys) -> tuple[Keys, NDArray[np.bool_]]:
        """Content keys (n,) and which of them are known."""
        rows = self.find(paths)
        known = rows >= 0
        contents = np.zeros(len(paths), np.uint64)
        known[known] = self._map["stamp"][rows[known]] == stamps[known]
        contents[known] = self._map["content"][rows[known]]
        return contents, known

    def add(self, paths: Keys, stamps: Keys, contents: Keys) -> None:
        self._append(paths, stamp=stamps, content=contents)


def vectors_file(folder: Path, identity: str) -> Path:
    words = re.sub("[^A-Za-z0-9.-]+", "-", " ".join(identity.split()[:2]))[:40].strip("-.")
    return folder / f"{words}-{content_key(identity.encode()):016x}.vectors"


def kept_vectors(folder: Path, identity: str, width: int) -> int:
    """How many vectors are in the file, without opening it."""
    try:
        size = vectors_file(folder, identity).stat().st_size
    except OSError:
        return 0
    record = 8 + 4 * width + 4
    return max(0, size - HEADER) // record


def keys_of(values: Sequence[int]) -> Keys:
    return np.asarray(values, dtype=np.uint64)
