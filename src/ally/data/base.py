"""Samples by row number: the protocol, and the fixed blocks in which all rows are read.

Floating-point sums and matrix products depend on how many rows go in at once. Every pass over a pool therefore computes
in blocks of `BLOCK` rows counted from its first row; a chunk is only how many blocks are read at a time. Results are
then the same for any chunk size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from ally.checks import check_count
from ally.types import AnyArray, IntArray


@runtime_checkable
class Source(Protocol):
    """Samples by absolute row number.

    `read` returns an array of shape ``(len(rows), *shape)``. It holds only those rows in memory, so a pool may be
    larger than memory. Reading the same rows twice gives the same values.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        ...

    def __len__(self) -> int: ...

    def read(self, rows: IntArray) -> AnyArray: ...

    def column(self, number: int) -> str:
        """Name of a feature, for messages."""
        ...


BLOCK = 1024
CHUNK_BYTES = 2**26
"""Without a chunk size, about this much is read at a time (as float32), but at least one block."""


def blocks(n: int) -> Iterator[slice]:
    """Slices of `BLOCK` rows that cover ``range(n)``."""
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))


def chunks(n: int, chunk_size: int | None = None, width: int = 1024) -> Iterator[slice]:
    """Slices of whole blocks, about `chunk_size` rows of `width` numbers each (rounded up to a multiple of `BLOCK`)."""
    size = max(1, CHUNK_BYTES // (4 * width)) if chunk_size is None else check_count("chunk_size", chunk_size)
    step = -(-size // BLOCK) * BLOCK
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
