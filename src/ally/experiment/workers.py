"""Processes that work through a list of calls, one thread each, and end when the caller does."""

from __future__ import annotations

import gc
import multiprocessing.connection
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeAlias

from ally.errors import AllyError
from ally.execution.processes import end_with_parent, sendable
from ally.safe_path import use_safe_path

POLL = 0.5
"""After this many seconds without a result, the caller is told so."""
Call: TypeAlias = tuple[Any, ...]


class Killed(AllyError):
    """A process ended in the middle of its work."""


class Ended(NamedTuple):
    """One call: its number, and what it gave or raised."""

    number: int
    result: Any = None
    error: BaseException | None = None


def work_through(function: Callable[..., Any], calls: Sequence[Call], processes: int) -> Generator[Ended | None]:
    """Run ``function(*call)`` for all calls and yield results as they finish, or None if none has for a while.

    Closing the iterator, like any exception in it, kills the processes. One that dies by itself fails its call and is
    replaced. With 0 processes the calls are made here, one after the other, so that a debugger can follow them.
    """
    if processes == 0:
        with one_thread():
            for number, call in enumerate(calls):
                yield Ended(number, *_outcome(function, call))
        return
    waiting = list(range(len(calls)))[::-1]
    hands: dict[Connection, tuple[BaseProcess, int]] = {}
    idle: list[BaseProcess] = []
    try:
        while waiting or hands:
            while waiting and len(hands) < processes:
                ours, process = _start()
                hands[ours] = process, waiting.pop()
                _give(ours, function, calls[hands[ours][1]])
            ready = set(multiprocessing.connection.wait(list(hands), POLL))
            if not ready:
                yield None
            for ours in [one for one in hands if one in ready]:
                process, number = hands[ours]
                try:
                    result, error = ours.recv()
                except (EOFError, OSError):
                    process.join()
                    del hands[ours]
                    lost = Killed("its process was killed, perhaps because memory ran out; use fewer workers")
                    yield Ended(number, error=lost)
                    continue
                if waiting:
                    hands[ours] = process, waiting.pop()
                    _give(ours, function, calls[hands[ours][1]])
                else:
                    del hands[ours]
                    ours.close()
                    idle.append(process)
                yield Ended(number, result, error)
    finally:
        for process, _ in hands.values():
            process.kill()
        for process in [*idle, *(process for process, _ in hands.values())]:
            process.join()


def _start() -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with use_safe_path():
        process.start()
    theirs.close()
    return ours, process


def _give(connection: Connection, function: Callable[..., Any], call: Call) -> None:
    """An undeliverable call is noticed when its answer is read."""
    with suppress(OSError):
        connection.send((function, call))


def _serve(connection: Connection) -> None:
    """The main loop of a process: calls in, results out, until the caller is gone.

    The first call imports what it needs. Imports make no garbage, and looking for it takes a fifth of their time.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    gc.disable()
    with one_thread():
        while True:
            try:
                function, call = connection.recv()
            except EOFError:
                return
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            connection.send(_outcome(function, call))


def _outcome(function: Callable[..., Any], call: Call) -> tuple[Any, BaseException | None]:
    """What the call gave, and what it raised."""
    try:
        return function(*call), None
    except Exception as error:
        return None, sendable(error)


@contextmanager
def one_thread() -> Iterator[None]:
    """Numbers must not depend on how many campaigns run at a time."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
