r"""Who does the work: a crew of workers, each with its part of the pool. This is the contract of an engine.

**Parts and workers.** The coordinator divides the work into parts, in order. An engine builds one worker from each,
``build(part)``, where it likes: in this process, in threads, on other machines. Workers share nothing and never talk to
each other. A *shard* is a part that holds samples: a run of candidates, of whole blocks. Results never depend on how
many shards there are or on where they are.

**Messages.** The coordinator calls methods by name (`Crew.each`, `Crew.one`, `Crew.scatter`) and waits; what comes back
is in the order of the parts. Arguments and results are values that can be pickled, and small: numbers, a row, numbers
per row. What is large and the same for many goes through `Engine.share`, and is sent once.
A worker must not change an argument, nor keep a result that it may change later: here they are the same objects.

**Failure.** An error that a worker raises reaches the caller as it was raised, once no other worker is busy; the crew
can be called again, though other workers may not have had the call. A worker's answers depend on its part and on the
calls it has had, on nothing else. So an engine whose worker is lost (a process killed, a machine gone) builds it anew
from its part, repeats its calls, and goes on: the coordinator notices a delay. A worker that is lost again and again is
an error (`EngineError`), never a hang.

**The end.** Workers live until the `with` block of their crew is left, by whatever way. Then their memory and their
files are given back, and a call is an error (`BrokenPart`). An interrupt ends work that is under way.

**Progress** is reported by the coordinator, between calls. A long piece of work is therefore several calls.

**Memory.** The coordinator holds a few numbers per sample (O(n) scalars) and a chunk of samples at a time. What is wide
(embeddings, probabilities) is held by the workers where `Engine.holds` says so: in their memory up to a budget, in
files of theirs beyond it.

`ally.testing.engine.check_engine` checks all this for any engine, ours and yours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch

from ally.checks import check_count
from ally.errors import BrokenPart

T = TypeVar("T")
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

    def scatter(self, method: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every worker, each with arguments of its own."""
        ...

    def passing(self) -> AbstractContextManager[None]:
        """Calls within leave nothing behind in the workers, so that they are not repeated for one that is built anew
        later. May be nested."""
        ...

    def __enter__(self) -> Crew: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


Shared: TypeAlias = Callable[[], T]
"""A value as workers get it: by calling this. It can be part of an argument or of a part."""


@runtime_checkable
class Engine(Protocol):
    """Where a crew works."""

    @property
    def holds(self) -> bool:
        """Whether workers keep what a learner sees in their shards, so that the coordinator never has all of it."""
        ...

    def parts(self, rows: int) -> int:
        """Into how many parts to divide so many rows."""
        ...

    def crew(self, parts: Sequence[Any], build: Callable[[Any], Any]) -> Crew:
        """One worker ``build(part)`` for each part."""
        ...

    def share(self, value: T) -> Shared[T]:
        """A value that many messages or parts hold, sent to where it is needed once."""
        ...


@dataclass(frozen=True)
class LocalEngine:
    """Workers in this process.

    Attributes:
        threads: how many work at a time; None is as many as torch uses. Compiled loops do not hold the interpreter's
            lock.
        shards: the number of parts; None is one for each thread that has enough to do.
        holds: whether snapshots are kept shard by shard, as on a cluster. It changes no id and is slower here.
    """

    threads: int | None = None
    shards: int | None = None
    holds: bool = False

    def __post_init__(self) -> None:
        for name in ("threads", "shards"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def parts(self, rows: int) -> int:
        return self.shards or max(1, min(self._width, rows // ROWS_PER_THREAD))

    def crew(self, parts: Sequence[Any], build: Callable[[Any], Any]) -> LocalCrew:
        return LocalCrew(parts, build, min(self._width, len(parts)))

    def share(self, value: T) -> Shared[T]:
        return lambda: value

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

    def scatter(self, method: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        workers = zip(self._open(), args, strict=True)
        return self._run([partial(getattr(worker, method), *own) for worker, own in workers])

    def passing(self) -> AbstractContextManager[None]:
        return nullcontext()

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
