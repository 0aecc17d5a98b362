"""A source whose rows are a list of ids, loaded when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ally.errors import IdError
from ally.sources.problems import Problems
from ally.types import AnyArray, IntArray

Load: TypeAlias = Callable[[Sequence[str]], AnyArray]
"""Values (n, *shape) of n ids."""


def note_gone(ids: Sequence[str], there: Iterable[bool], problems: Problems) -> list[str]:
    """Those of `ids` that are not there, recorded."""
    gone = [id for id, here in zip(ids, there, strict=True) if not here]
    for id in gone:
        problems.add(id, "gone", "the source does not have it (any more)")
    return gone


def ensure_none_gone(gone: Sequence[str], ids: Sequence[str], place: object) -> None:
    if gone:
        raise IdError(
            f"{len(gone)} of {len(ids)} ids are not in {place}, for instance {gone[0]!r}; leave out what missing() "
            "lists"
        )


@dataclass(frozen=True)
class ById:
    ids: Sequence[str] = field(repr=False)
    shape: tuple[int, ...]
    load: Load = field(repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    sparse: bool = False
    """Zeros mean absence: features share one scale and are not centred."""

    def __len__(self) -> int:
        return len(self.ids)

    def read(self, rows: IntArray) -> AnyArray:
        return self.load([self.ids[row] for row in rows])

    def column(self, number: int) -> str:
        return repr(self.names[number]) if self.names else str(number)
