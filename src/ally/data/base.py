"""Samples by row number: the protocol, and the fixed blocks in which all rows are read.

Floating-point sums and matrix products depend on how many rows go in at once. Every pass over a pool therefore computes
in blocks of `BLOCK` rows counted from its first row; a chunk is only how many blocks are read at a time. Results are
then the same for any chunk size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ally.checks import check_count
from ally.types import AnyArray, IntArray

if TYPE_CHECKING:
    from ally.data.arrays.scaling import Moments


@runtime_checkable
class RowReader(Protocol):
    """The least that a pool of your own has to offer: `as_source` makes a `Source` of it."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def read(self, rows: IntArray) -> AnyArray: ...

    def column(self, number: int) -> str: ...


class Source(ABC):
    """Samples by absolute row number.

    `read` returns an array of shape ``(len(rows), *shape)``. It holds only those rows in memory, so a pool may be
    larger than memory. Reading the same rows twice gives the same values.
    """

    numeric: bool = True
    """Whether `read` gives numbers; otherwise samples are objects, which `take` gives as they came."""
    sparse: bool = False
    """Zeros mean absence: features share one scale and are not centred."""
    vectors: bool = False
    """Distances mean something: features share one scale."""
    by_path: bool = False
    """Whether other processes open it by the path of its file."""
    divisible: bool = False
    """Whether `part` cuts runs of rows out of it; otherwise other processes get all of it."""
    names: tuple[str, ...] = ()
    """The names of its features, if they have any."""
    notes: tuple[str, ...] = ()
    """What was decided about it, in sentences."""
    words: Source | None = None
    """The same samples as weights of words, if these are vectors of texts."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, rows: IntArray) -> AnyArray: ...

    def column(self, number: int) -> str:
        """Name of a feature, for messages."""
        return repr(self.names[number]) if self.names else str(number)

    def take(self, rows: IntArray) -> Any:
        """The samples as an estimator takes them: one row each, in the form they came in."""
        return self.read(rows).reshape(len(rows), -1)

    def part(self, run: slice) -> Source:
        """A run of the rows as a source of its own, if this one is `divisible`."""
        raise NotImplementedError(f"a {type(self).__name__} cannot be cut")

    def moments(self, rows: IntArray) -> Moments | None:
        """Sums over `rows` that are known already; None where they have yet to be computed."""
        return None

    def resemble(self, source: RowReader) -> None:
        """Declare what `source` declares: these are its samples, seen in another way."""
        for name in DECLARED:
            setattr(self, name, getattr(source, name, getattr(Source, name)))


DECLARED = ("numeric", "sparse", "vectors", "by_path", "divisible", "names", "notes", "words")


class AdaptedSource(Source):
    """A pool of somebody's own that has what a `RowReader` has, and may declare more."""

    def __init__(self, reader: RowReader) -> None:
        self._reader: Any = reader
        self.resemble(reader)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._reader.shape)

    def __len__(self) -> int:
        return len(self._reader)

    def read(self, rows: IntArray) -> AnyArray:
        values: AnyArray = self._reader.read(rows)
        return values

    def column(self, number: int) -> str:
        return str(self._reader.column(number))

    def take(self, rows: IntArray) -> Any:
        return self._reader.take(rows) if hasattr(self._reader, "take") else super().take(rows)


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
