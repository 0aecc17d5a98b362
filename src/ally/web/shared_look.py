"""Group look: requests that arrive while a look is under way share the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedLook(Generic[T]):
    """Each call returns what a look found that began after the call, in a thread; never more than one is under way."""

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._now: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        if self._next is None:
            self._next = asyncio.create_task(self._look_after(self._now))
        # Whoever goes away leaves the look to the others.
        return await asyncio.shield(self._next)

    async def _look_after(self, before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait([before])
        self._now, self._next = self._next, None
        return await asyncio.to_thread(self._look)
