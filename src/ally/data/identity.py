"""Stable ids: content hashes, which ids were seen before, and where each one is."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import JSONEncoder, encode_basestring
from pathlib import Path
from typing import Any

import numpy as np

from ally.files import replacing
from ally.types import LONGEST_ID, MOST_BYTES, AnyArray, BoolArray, IntArray, find_text_fault

_JSON = JSONEncoder(ensure_ascii=False, default=str)


def content_hash(*parts: bytes) -> str:
    """``h`` and 20 hexadecimal digits: the letter keeps spreadsheets from reading it as a number."""
    digest = hashlib.blake2b(digest_size=10)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return f"h{digest.hexdigest()}"


def row_hash(values: Mapping[str, Any], columns: Iterable[str]) -> str:
    """A hash of the values that are present, whatever the order of the columns."""
    present = [
        f"[{_to_json(name)}, {_to_json(values[name])}]" for name in sorted(columns) if not is_missing(values.get(name))
    ]
    return content_hash(f"[{', '.join(present)}]".encode("utf-8", "surrogatepass"))


def _to_json(value: Any) -> str:
    return encode_basestring(value) if type(value) is str else _JSON.encode(value)


def is_missing(value: Any) -> bool:
    """Whether a value is None, an empty text, NaN or a pandas null."""
    if value is None or isinstance(value, str):
        return not value
    if isinstance(value, float):
        return value != value
    return type(value).__name__ in ("NAType", "NaTType")


def odd_id(id: str) -> str | None:
    """Why a text cannot be an id, or None."""
    fault = find_text_fault(id, LONGEST_ID) if id else "is empty"
    if fault is None and len(id.encode()) > MOST_BYTES:
        fault = f"takes {len(id.encode())} bytes; at most {MOST_BYTES} are allowed"
    return fault and f"the id {fault}"


@lru_cache(1)  # every id is asked for twice in a row, by `SeenIds` and by `Index`
def id_key(id: str) -> int:
    """64 bits of an id: two of a million ids share one with probability below 1e-7."""
    return int.from_bytes(hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def id_keys(ids: Sequence[str]) -> AnyArray:
    """(n,) uint64."""
    return np.fromiter((id_key(id) for id in ids), dtype=np.uint64, count=len(ids))


class SeenIds:
    """The ids met so far, as keys in an open table of 16 to 32 bytes per id."""

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 * 1024))
        self._count = 0

    def add(self, id: str) -> bool:
        """Whether the id is new."""
        if not _put(self._table, id_key(id) or 1):
            return False
        self._count += 1
        if 2 * self._count > len(self._table):
            larger = array("Q", bytes(16 * len(self._table)))
            for key in self._table:
                if key:
                    _put(larger, key)
            self._table = larger
        return True


def _put(table: array[int], key: int) -> bool:
    """Whether the key (not 0) was put in; its length is a power of two and half of it is free."""
    mask = len(table) - 1
    place = key & mask
    while found := table[place]:
        if found == key:
            return False
        place = (place + 1) & mask
    table[place] = key
    return True


class Index:
    """Where each id is, 16 bytes per sample: built once in the order of the source, then looked up by id."""

    def __init__(self) -> None:
        self._keys: Any = array("Q")
        self._places: Any = array("q")

    def add(self, id: str, place: int) -> None:
        self._keys.append(id_key(id))
        self._places.append(place)

    def close(self) -> Index:
        keys = np.frombuffer(self._keys, dtype=np.uint64) if len(self._keys) else np.empty(0, np.uint64)
        order = np.argsort(keys, kind="stable")
        places = np.frombuffer(self._places, dtype=np.int64) if len(self._places) else np.empty(0, np.int64)
        self._keys, self._places = keys[order], places[order]
        return self

    @property
    def arrays(self) -> AnyArray:
        """(2, n) uint64, of a closed index: keys, and places as they lie in memory."""
        return np.stack([self._keys, self._places.view(np.uint64)])

    @classmethod
    def of(cls, arrays: AnyArray) -> Index:
        """The closed index with these `arrays`."""
        if arrays.dtype != np.uint64 or arrays.ndim != 2 or len(arrays) != 2:
            raise ValueError(f"an index is (2, n) uint64 and this is {arrays.shape} {arrays.dtype}")
        index = cls()
        index._keys, index._places = arrays[0], arrays[1].view(np.int64)
        return index

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, keys: AnyArray) -> tuple[IntArray, BoolArray]:
        """Places (n,) and which keys are there; the place of an absent key means nothing."""
        if not len(self):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return self._places[at], self._keys[at] == keys


WORTH = 50_000
"""Rows of a file; a shorter one is walked through in less than a second."""


@dataclass(frozen=True)
class KeptIndex:
    """One file in `folder` for the source at `place`, good for as long as the source's stamp and `reading` (how ids are
    read) stay.

    A file that cannot be read or written is ignored: the source can always be scanned instead.
    """

    folder: Path
    place: str
    reading: str

    def read(self, stamp: tuple[int, ...]) -> Index | None:
        try:
            return Index.of(np.load(self._path(stamp), allow_pickle=False))
        except (OSError, ValueError, EOFError, AttributeError, MemoryError):
            return None

    def write(self, stamp: tuple[int, ...], index: Index) -> None:
        if len(index) < WORTH:
            return
        path = self._path(stamp)
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as aside, aside.open("wb") as out:
                np.save(out, index.arrays)
            for earlier in self.folder.glob(f"{self._name}-*"):
                if earlier != path:
                    earlier.unlink(missing_ok=True)

    @property
    def _name(self) -> str:
        return f"rows-{content_hash(self.place.encode('utf-8', 'surrogateescape'))}"

    def _path(self, stamp: tuple[int, ...]) -> Path:
        return self.folder / f"{self._name}-{content_hash(repr((stamp, self.reading)).encode())}.npy"
