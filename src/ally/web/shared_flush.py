"""What arrives while a flush is under way waits for the next one, and shares it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from ally.campaign import Campaign
from ally.campaign.telling import PageAnswer, Taken
from ally.errors import InputError, StoreError

T = TypeVar("T")

TRAINING_PAUSE = 1.0
"""Seconds between two looks at whether a training is due."""
LONGEST = 0.015
"""Seconds after which a flush takes no further call: whoever answers waits for it."""


class Gatherer:
    """Answers go first. Everything waits here, and no thread does: threads are there for those who only look."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._waiting: list[tuple[Sequence[PageAnswer], asyncio.Future[list[Taken | InputError]]]] = []
        self._calls: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._offering: asyncio.Task[None] | None = None
        self.flushes = 0

    async def tell(self, given: Sequence[PageAnswer]) -> list[Taken | InputError]:
        """What became of each answer, once they are on disk. The answers are recorded even if the caller goes away."""
        told: asyncio.Future[list[Taken | InputError]] = asyncio.get_running_loop().create_future()
        self._waiting.append((given, told))
        return await self._flushed(told)

    async def call(self, work: Callable[[], T]) -> T:
        """What a call of the campaign returns, once its effect is on disk. It may be made more than once."""
        made: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.append((work, made))
        return await self._flushed(made)

    async def _flushed(self, done: asyncio.Future[T]) -> T:
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return await done

    async def _flush(self) -> None:
        try:
            while self._waiting or self._calls:
                self.flushes += 1
                await self._flush_once()
        finally:
            self._flushing = None
        if self._offering is None:
            self._offering = asyncio.create_task(self._offer())

    async def _flush_once(self) -> None:
        batch, self._waiting = self._waiting, []
        calls = list(self._calls)
        every = [one for given, _ in batch for one in given]
        try:
            told, made = await asyncio.to_thread(
                self._campaign.page.together, every, [call for call, _ in calls], LONGEST
            )
        except Exception as error:
            for _, waiting in batch:
                _settle(waiting, error)
            made = [error] * len(calls)
        else:
            answers = iter(told)
            for given, waiting in batch:
                _settle(waiting, [next(answers) for _ in given])
        for outcome in made:
            _settle(self._calls.popleft()[1], outcome)

    async def _offer(self) -> None:
        """Nobody waits for this: even if no training can start, the answers are on record."""
        try:
            await asyncio.sleep(TRAINING_PAUSE)
            with suppress(OSError, StoreError):
                await asyncio.to_thread(self._campaign.training.start_if_due)
        finally:
            self._offering = None


def _settle(waiting: asyncio.Future[Any], outcome: Any) -> None:
    if waiting.cancelled():
        return
    if isinstance(outcome, BaseException):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)
