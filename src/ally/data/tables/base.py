"""The protocol of a table that is read row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ally.errors import DataError


class Row(NamedTuple):
    place: int
    """Where the row is found again: a position in the file or a number."""
    name: str
    """For messages: ``line 7`` of a text file, ``row 7`` (from 1) of another."""
    values: dict[str, Any]
    """Text from a CSV file, plain Python values from the others; what is missing may be absent, None, NaN or empty."""


class BadRow(NamedTuple):
    name: str
    reason: str


MOST_BAD, BAD_OF_GOOD = 100_000, 10
"""Rows that cannot be read, and how many times as many as those that can."""


def ensure_mostly_good(rows: Iterable[Row | BadRow], place: str) -> Iterator[Row | BadRow]:
    """The same rows. Raises where hardly any can be read: it is no table, and to report each row would take minutes."""
    bad = 0
    for number, row in enumerate(rows, 1):
        if isinstance(row, BadRow):
            bad += 1
            if bad > MOST_BAD and bad > BAD_OF_GOOD * (number - bad):
                raise DataError(
                    f"{bad} of the first {number} rows of {place} cannot be read, such as {row.name}: {row.reason}; "
                    "give a table"
                )
        yield row


class Rows(Protocol):
    """`scan` holds one row (or one batch of rows) in memory. `at` gives the rows at the given places, or why one cannot
    be read."""

    @property
    def place(self) -> str:
        """The file, for messages."""
        ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def written(self) -> bool:
        """Whether all values are texts as they are written, so that ``3`` and ``"3"`` are one."""
        ...

    def scan(self) -> Iterator[Row | BadRow]: ...

    def at(self, places: Sequence[int]) -> list[dict[str, Any] | str]: ...

    def stamp(self) -> tuple[int, ...]:
        """Changes when the file changes, so that places are not used after that."""
        ...
