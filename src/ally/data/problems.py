"""Problems with single samples of a source: collected by id, never fatal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

ProblemKind: TypeAlias = Literal["unreadable", "duplicate", "gone", "value", "skipped"]
KEPT = 1000
"""Problems kept word for word; the others are counted."""


class SampleProblem(NamedTuple):
    id: str
    """The sample; for a row that has no id, ``line 7`` or ``row 7``."""
    kind: ProblemKind
    reason: str


class Problems:
    """Problems by id. A problem met again is the same problem; above `KEPT` they are counted only."""

    def __init__(self) -> None:
        self._kept: dict[SampleProblem, None] = {}
        self.counts: Counter[ProblemKind] = Counter()

    def add(self, id: str, kind: ProblemKind, reason: str) -> None:
        problem = SampleProblem(id, kind, reason)
        if problem in self._kept:
            return
        self.counts[kind] += 1
        if len(self._kept) < KEPT:
            self._kept[problem] = None

    def clear(self) -> None:
        self._kept.clear()
        self.counts.clear()

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[SampleProblem]:
        return iter(tuple(self._kept))

    @property
    def first(self) -> str:
        """The first problem in words."""
        problem = next(iter(self._kept))
        return f"{problem.id}: {problem.reason}"

    def of(self, id: str) -> tuple[SampleProblem, ...]:
        return tuple(problem for problem in self._kept if problem.id == id)

    def __str__(self) -> str:
        lines = [f"{problem.id}: {problem.kind}: {problem.reason}" for problem in self._kept]
        more = len(self) - len(lines)
        return "\n".join([*lines, f"and {more} more"] if more else lines)

    def __repr__(self) -> str:
        return f"Problems({', '.join(f'{kind}={count}' for kind, count in sorted(self.counts.items())) or 'none'})"
