"""Fixed blocks of rows.

Floating-point sums and matrix products depend on how many rows go in at once. Every pass over a pool therefore computes in
blocks of `BLOCK` rows counted from its first row; a chunk is only how many blocks are read at a time. Results are then the
same for any chunk size.
"""

from __future__ import annotations

from collections.abc import Iterator

from ally.errors import InputError

BLOCK = 1024
DEFAULT_CHUNK = 16 * BLOCK


def blocks(n: int) -> Iterator[slice]:
    """Slices of `BLOCK` rows that cover ``range(n)``."""
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))


def chunks(n: int, chunk_size: int | None = None) -> Iterator[slice]:
    """Slices of whole blocks, about `chunk_size` rows each (rounded up to a multiple of `BLOCK`)."""
    size = DEFAULT_CHUNK if chunk_size is None else chunk_size
    if size < 1:
        raise InputError(f"chunk_size={chunk_size} is not positive; pass the number of rows to read at a time, or None")
    step = -(-size // BLOCK) * BLOCK
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
