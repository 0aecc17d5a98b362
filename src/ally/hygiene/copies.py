"""Samples with identical inputs, found in one pass over a source.

Each row is reduced to a fingerprint of 128 bits. Rows of one fingerprint are then compared as they are, so that a
collision costs time and never merges samples that differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ally.data import Source, blocks, chunks
from ally.types import AnyArray, BoolArray, IntArray, Progress

Marks: TypeAlias = NDArray[np.uint64]
Fingerprint: TypeAlias = Callable[[AnyArray], Marks]


@dataclass(frozen=True, eq=False)
class EqualInputs:
    """Which rows have the same input."""

    rows: IntArray
    """(m,) absolute rows, ascending."""
    first: IntArray
    """(m,) the lowest of `rows` with the same input."""

    def collapse(self, free: IntArray) -> tuple[IntArray, IntArray]:
        """Splits the free rows (ascending) into one per distinct input, and the rest in the order of recall.

        Copies of free rows are recalled first and copies of rows that are not free last, each from the lowest row up.
        """
        is_free = np.isin(self.rows, free, assume_unique=True)
        met = np.isin(self.first[is_free], self.first[~is_free])
        lowest = np.zeros(len(free), dtype=bool)
        lowest[np.unique(self.first[is_free], return_index=True)[1]] = True
        return free[lowest & ~met], np.concatenate([free[~lowest & ~met], free[met]])


def fingerprints(values: AnyArray) -> Marks:
    """128 bits of every sample, (B, *shape) → (B, 2): sums of its 8-byte words times random odd numbers, modulo 2⁶⁴; of
    objects the hash of what they look like.

    The upper half of a word is folded into its lower half first: small whole numbers as floats have bits in the upper
    half only.
    """
    flat = values.reshape(len(values), -1)
    if flat.dtype == object:
        digests = [blake2b(repr(row.tolist()).encode("utf-8", "replace"), digest_size=16).digest() for row in flat]
        return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)
    flat = flat.astype(np.float64) if flat.dtype.itemsize > 8 else flat
    words = np.zeros((len(flat), -(-flat.shape[1] * flat.dtype.itemsize // 8)), dtype=np.uint64)
    numbers = words.view(flat.dtype)[:, : flat.shape[1]]
    numbers[...] = flat
    if flat.dtype.kind == "f":
        numbers += flat.dtype.type(0)  # -0.0 becomes 0.0
    words ^= words >> np.uint64(32)
    marks: Marks = words @ _factors(words.shape[1])
    return marks


@lru_cache(maxsize=4)
def _factors(width: int) -> Marks:
    return np.random.default_rng(0).integers(2**64, size=(width, 2), dtype=np.uint64) | np.uint64(1)


def find_copies(
    source: Source,
    rows: IntArray,
    chunk_size: int | None = None,
    progress: Progress | None = None,
    fingerprint: Fingerprint = fingerprints,
    marks: Marks | None = None,
) -> EqualInputs:
    """Compares `rows` (ascending) by value: -0.0 equals 0.0, NaN equals NaN. Holds O(m) numbers and a chunk of
    samples. With `marks`, the fingerprints (m, 2) of the rows, only rows that share one are read."""
    if marks is None:
        marks = _marks(source, rows, chunk_size, progress, fingerprint)
    first = np.arange(len(rows))
    follower, leader = _follow(*_groups(marks))
    while len(follower):
        same = _equal(source, rows[follower], rows[leader], chunk_size)
        first[follower[same]] = leader[same]
        follower, leader = follower[~same], leader[~same]
        leads = np.ones(len(follower), dtype=bool)
        leads[1:] = leader[1:] != leader[:-1]
        follower, leader = _follow(follower, leads)
    return EqualInputs(rows, rows[first])


def _marks(
    source: Source, rows: IntArray, chunk_size: int | None, progress: Progress | None, fingerprint: Fingerprint
) -> Marks:
    kind = source.read(rows[:1]).dtype
    marks = np.empty((len(rows), 2), dtype=np.uint64)
    for chunk in chunks(len(rows), chunk_size, math.prod(source.shape)):
        values = source.read(rows[chunk])
        for block in blocks(len(values)):
            marks[chunk][block] = fingerprint(values[block].astype(kind, copy=False))
        if progress is not None:
            progress("compare", chunk.stop, len(rows))
    return marks


def _groups(marks: Marks) -> tuple[IntArray, BoolArray]:
    """Positions whose mark is not the only one of its kind, (m, 2) → (k,): equal marks together, ascending; and where
    each kind starts."""
    order = np.argsort(marks[:, 0])
    same = np.diff(marks[order, 0]) == 0
    order = order[np.append(same, False) | np.append(False, same)]
    order = order[np.lexsort((order, marks[order, 1], marks[order, 0]))]
    return order, np.append(True, (marks[order[1:]] != marks[order[:-1]]).any(axis=1))[: len(order)]


def _follow(order: IntArray, leads: BoolArray) -> tuple[IntArray, IntArray]:
    """Those of `order` that do not lead their group, and the leader of each; a group starts where `leads` is true."""
    leader = order[leads][np.cumsum(leads) - 1]
    return order[~leads], leader[~leads]


def _equal(source: Source, a: IntArray, b: IntArray, chunk_size: int | None) -> BoolArray:
    """Whether the samples at rows a_i and b_i have the same values, (m,). The source is read in the order of a."""
    order = np.argsort(a, kind="stable")
    same = np.empty(len(a), dtype=bool)
    for chunk in chunks(len(a), chunk_size, 2 * math.prod(source.shape)):
        here = order[chunk]
        left, right = source.read(a[here]), source.read(b[here])
        for block in blocks(len(here)):
            x, y = left[block].reshape(len(left[block]), -1), right[block].reshape(len(right[block]), -1)
            same[here[block]] = ((x == y) | ((x != x) & (y != y))).all(axis=1)
    return same
