"""Who does the work: a crew of workers, each with its part of the pool.

A worker is an object that is built from its part where the part is. The coordinator calls its methods by name with
small plain values (numbers, a numpy row) and gets such values back, in the order of the parts. Workers share nothing
and never talk to each other, so the same coordinator runs with workers in this process, in threads, or on other
machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Protocol

import torch

from ally.checks import check_count
from ally.errors import BrokenPart

ROWS_PER_THREAD = 2**16
"""With fewer rows, waking a thread costs more than it saves."""


class Crew(Protocol):
    """Workers in the order of their parts, until the block is left."""

    def __len__(self) -> int: ...

    def each(self, method: str, *args: Any) -> list[Any]:
        """Calls a method of every worker."""
        ...

    def one(self, worker: int, method: str, *args: Any) -> Any:
        """Calls a method of one worker."""
        ...

    def __enter__(self) -> Crew: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Engine(Protocol):
    """Where a crew works."""

    def parts(self, rows: int) -> int:
        """Into how many parts to divide so many rows."""
        ...

    def crew(self, parts: Sequence[Any], build: Callable[[Any], Any]) -> Crew:
        """One worker ``build(part)`` for each part."""
        ...


@dataclass(frozen=True)
class LocalEngine:
    """Workers in this process.

    Attributes:
        threads: how many work at a time; None is as many as torch uses. Compiled loops do not hold the interpreter's
            lock.
        shards: the number of parts; None is one for each thread that has enough to do.
    """

    threads: int | None = None
    shards: int | None = None

    def __post_init__(self) -> None:
        for name in ("threads", "shards"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def parts(self, rows: int) -> int:
        return self.shards or max(1, min(self._width, rows // ROWS_PER_THREAD))

    def crew(self, parts: Sequence[Any], build: Callable[[Any], Any]) -> LocalCrew:
        return LocalCrew(parts, build, min(self._width, len(parts)))

    @property
    def _width(self) -> int:
        return self.threads or torch.get_num_threads()


class LocalCrew:
    """Workers that are plain objects; the calling thread and `threads` − 1 others share the calls."""

    def __init__(self, parts: Sequence[Any], build: Callable[[Any], Any], threads: int) -> None:
        self._helpers = threads - 1
        self._pool = ThreadPoolExecutor(self._helpers, thread_name_prefix="ally") if self._helpers else None
        self._workers: list[Any] | None = None
        try:
            self._workers = self._run([partial(build, part) for part in parts])
        except BaseException:
            self._close()
            raise

    def __len__(self) -> int:
        return len(self._open())

    def each(self, method: str, *args: Any) -> list[Any]:
        return self._run([partial(getattr(worker, method), *args) for worker in self._open()])

    def one(self, worker: int, method: str, *args: Any) -> Any:
        return getattr(self._open()[worker], method)(*args)

    def __enter__(self) -> LocalCrew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _open(self) -> list[Any]:
        if self._workers is None:
            raise BrokenPart("the workers have stopped; use them inside the `with` block")
        return self._workers

    def _close(self) -> None:
        self._workers = None
        if self._pool is not None:
            self._pool.shutdown()

    def _run(self, calls: list[Callable[[], Any]]) -> list[Any]:
        """Results in the order of the calls. An error is raised once no other call is running."""
        if self._pool is None:
            return [call() for call in calls]
        results: list[Any] = [None] * len(calls)
        waiting = iter(range(len(calls)))

        def work() -> None:
            for number in waiting:
                results[number] = calls[number]()

        helpers = [self._pool.submit(work) for _ in range(self._helpers)]
        try:
            work()
        finally:
            wait(helpers)
        for helper in helpers:
            helper.result()
        return results
