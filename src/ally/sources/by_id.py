"""A source whose rows are a list of ids, loaded when they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ally.types import AnyArray, IntArray

Load: TypeAlias = Callable[[Sequence[str]], AnyArray]
"""Values (n, *shape) of n ids."""


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
