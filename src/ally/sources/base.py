"""The protocol of a source of samples."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

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
