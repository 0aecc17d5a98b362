"""Numbers without gaps, and lists in pieces that every backend takes in one statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Select, func, select

T = TypeVar("T")

IN_ONE = 500
"""Values in one IN (…)."""


def last_number(connection: Connection, column: Column[Any]) -> int:
    """The highest number on record, 0 if there is none. The next one is free to take in a writing transaction."""
    return int(connection.execute(_highest(column)).scalar_one())


@cache
def _highest(column: Column[Any]) -> Select[tuple[Any]]:
    return select(func.coalesce(func.max(column), 0))


def pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items, the last one shorter."""
    iterator = iter(items)
    while piece := list(islice(iterator, size)):
        yield piece


def in_pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), IN_ONE):
        yield items[start : start + IN_ONE]
