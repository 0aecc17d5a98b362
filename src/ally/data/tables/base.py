"""What every table offers: its rows one at a time, and again by their position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ally.errors import DataError

MOST_BAD, BAD_OF_GOOD = 100_000, 10
"""Rows that cannot be read, and how many times as many as those that can."""
MOST_COLUMNS = 100_000
GONE = "the file is shorter than before"


class Row(NamedTuple):
    position: int
    """Where the row is found again: bytes from the start of the file, or a number of rows."""
    name: str
    """For messages: ``line 7`` of a text file, ``row 7`` (from 1) of another."""
    values: dict[str, Any]
    """Text from a CSV file, plain Python values from the others; what is missing may be absent, None, NaN or empty."""


class BadRow(NamedTuple):
    name: str
    reason: str


class Rows(ABC):
    """`scan` holds one row (or one batch of rows) in memory."""

    source: str
    """The file, for messages."""
    columns: tuple[str, ...]
    written = False
    """Whether all values are texts as they are written, so that ``3`` and ``"3"`` are one."""
    notes: tuple[str, ...] = ()
    """What was decided about the file, in sentences."""
    decimal = "."
    """The mark of decimal numbers in text."""
    index: str | None = None
    """The column that holds the index of a pandas frame, unless that only numbers the rows."""

    @abstractmethod
    def scan(self) -> Iterator[Row | BadRow]: ...

    @abstractmethod
    def at(self, positions: Sequence[int]) -> list[dict[str, Any] | str]:
        """The rows at these positions, or why one cannot be read."""

    @abstractmethod
    def stamp(self) -> tuple[int, ...]:
        """Changes when the file changes, so that positions are not used after that."""


def ensure_mostly_good(rows: Iterable[Row | BadRow], source: str) -> Iterator[Row | BadRow]:
    """The same rows. Raises where hardly any can be read: it is no table, and to report each row would take minutes."""
    bad = 0
    for number, row in enumerate(rows, 1):
        if isinstance(row, BadRow):
            bad += 1
            if bad > MOST_BAD and bad > BAD_OF_GOOD * (number - bad):
                raise DataError(
                    f"{bad} of the first {number} rows of {source} cannot be read, such as {row.name}: {row.reason}; "
                    "give a table"
                )
        yield row


def check_columns(names: Collection[str], source: object, *, header: bool = False) -> tuple[str, ...]:
    """The names; raises if there are too many, since each is looked at by itself, or if one stands there twice."""
    if len(names) > MOST_COLUMNS:
        raise DataError(
            f"{source} has {len(names)} columns; at most {MOST_COLUMNS} are read: save numbers as an .npy array instead"
        )
    repeated = next((name for name, count in Counter(iter(names)).items() if count > 1), None)
    if repeated is not None:
        advice = ", or say header=False (--no-header) if the first line holds data" if header else ""
        raise DataError(f"{source} has the column {repeated!r} more than once; give every column its own name{advice}")
    return tuple(names)
