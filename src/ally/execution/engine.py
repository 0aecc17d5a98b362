r"""The contract of an engine, which runs a crew of workers, each with its part of the pool.

**Parts and workers.** The coordinator divides the work into ordered parts. An engine builds one worker from each,
``build(part)``, wherever it likes: in this process, in threads, on other machines. Workers share nothing and never talk
to each other. A *shard* is a part that holds samples: a run of candidates, in whole blocks. Results never depend on the
number of shards or on where they are.

**Messages.** The coordinator calls methods by name (`Crew.each`, `Crew.one`, `Crew.scatter`) and waits; results come
back in the order of the parts. Arguments and results can be pickled and are small: numbers, a row, numbers per row.
Large values that many workers need go through `Engine.share` and are sent once.
A worker must not change an argument, nor keep a result that it may change later: in this process they are the same
objects.

**Failure.** When a worker raises an error, the caller gets that error once no other worker is busy. The crew can be
called again, though other workers may not have received the call. A worker's answers depend only on its part and the
calls it has received. So when an engine loses a worker (a killed process, a lost machine), it rebuilds the worker from
its part, repeats its calls, and continues; the coordinator only notices a delay. If a worker is lost again and again,
that is an error (`EngineError`), never a hang.

**The end.** Workers live until the `with` block of their crew ends, however it ends. Then their memory and files are
released, and further calls are an error (`BrokenPart`). An interrupt stops work in progress.

**Progress** is reported by the coordinator, between calls. Long work is therefore split into several calls.

**Memory.** The coordinator holds a few numbers per sample (O(n) scalars) and one chunk of samples at a time. If
`Engine.holds` is true, the workers hold the wide data (embeddings, probabilities): in memory up to a budget, in their
own files beyond it.

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
    """Workers in the order of their parts, until the `with` block ends."""

    def __len__(self) -> int: ...

    def each(self, method: str, *args: Any) -> list[Any]:
        """Calls a method of every worker."""
        ...

    def one(self, worker: int, method: str, *args: Any) -> Any:
        """Calls a method of one worker."""
        ...

    def scatter(self, method: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every worker, each with its own arguments."""
        ...

    def passing(self) -> AbstractContextManager[None]:
        """Calls inside this block do not change the workers, so they are not repeated when a worker is rebuilt. May be
        nested."""
        ...

    def __enter__(self) -> Crew: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


Shared: TypeAlias = Callable[[], T]
"""A shared value; workers get it by calling this. It can be inside an argument or a part."""


@runtime_checkable
class Engine(Protocol):
    """Where a crew works."""

    @property
    def holds(self) -> bool:
        """Whether workers keep the learner's view of their shards, so that the coordinator never holds all of it."""
        ...

    def parts(self, rows: int) -> int:
        """How many parts to divide this many rows into."""
        ...

    def crew(self, parts: Sequence[Any], build: Callable[[Any], Any]) -> Crew:
        """One worker ``build(part)`` for each part."""
        ...

    def share(self, value: T) -> Shared[T]:
        """A value that many messages or parts contain; it is sent to each place only once."""
        ...


@dataclass(frozen=True)
class LocalEngine:
    """Workers in this process.

    Attributes:
        threads: how many run at a time; None is as many as torch uses. Compiled loops release the interpreter's lock.
        shards: the number of parts; None is one for each thread that has enough to do.
        holds: whether snapshots are kept shard by shard, as on a cluster. It changes no ids and is slower here.
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
