"""Calls as tasks of a Ray cluster, one thread each: what `workers` does with processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from ally.execution.processes import end_with_parent, sendable
from ally.execution.ray import connect, ensure_room
from ally.execution.resolve import address_of
from ally.experiment.workers import POLL, Call, Ended, Killed, one_thread

RETRIES = 3
"""A task whose process is lost is begun again; a campaign goes on from its journal."""


def cpus(engine: str) -> int:
    """How many tasks of a cluster run at a time."""
    ray = connect(address_of(engine))
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def tasks_through(function: Callable[..., Any], calls: Sequence[Call], engine: str) -> Generator[Ended | None]:
    """Runs ``function(*call)`` for all calls and yields them as they end, or None when for a while none has.

    Closing the iterator, like any exception in it, ends the tasks.
    """
    ray = connect(address_of(engine))
    ensure_room("the campaigns")
    task = ray.remote(_task).options(num_cpus=1, max_retries=RETRIES)
    running = {task.remote(function, call): number for number, call in enumerate(calls)}
    try:
        while running:
            ready, _ = ray.wait(list(running), timeout=POLL)
            if not ready:
                yield None
            for ref in ready:
                number = running.pop(ref)
                try:
                    result, error = ray.get(ref)
                except ray.exceptions.RayError as lost:
                    result, error = None, Killed(f"its process was lost {RETRIES + 1} times ({type(lost).__name__})")
                yield Ended(number, result, error)
    finally:
        if ray.is_initialized():
            for ref in running:
                ray.cancel(ref, force=True)


def _task(function: Callable[..., Any], call: Call) -> tuple[Any, Exception | None]:
    end_with_parent()  # a busy task may outlive a node that was killed by minutes
    with one_thread():
        try:
            return function(*call), None
        except Exception as error:
            return None, sendable(error)
