"""Answers that arrive while others are being flushed wait for the next flush, and share it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from ally.campaign import Campaign
from ally.campaign.telling import PageAnswer, Taken
from ally.errors import InputError, StoreError

TRAINING_PAUSE = 1.0
"""Seconds between two looks at whether a training is due."""


class Gatherer:
    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._waiting: list[tuple[Sequence[PageAnswer], asyncio.Future[list[Taken | InputError]]]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._offering: asyncio.Task[None] | None = None
        self.flushes = 0

    async def tell(self, given: Sequence[PageAnswer]) -> list[Taken | InputError]:
        """What became of each answer, once they are on disk. The answers are recorded even if the caller goes away."""
        told: asyncio.Future[list[Taken | InputError]] = asyncio.get_running_loop().create_future()
        self._waiting.append((given, told))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return await told

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                self.flushes += 1
                try:
                    every = [one for given, _ in batch for one in given]
                    done = iter(await asyncio.to_thread(self._campaign.page.tell_together, every))
                    results: list[list[Taken | InputError] | BaseException] = [
                        [next(done) for _ in g] for g, _ in batch
                    ]
                except Exception as error:
                    results = [error] * len(batch)
                for (_, told), result in zip(batch, results, strict=True):
                    if told.cancelled():
                        continue
                    if isinstance(result, BaseException):
                        told.set_exception(result)
                    else:
                        told.set_result(result)
        finally:
            self._flushing = None
        if self._offering is None:
            self._offering = asyncio.create_task(self._offer())

    async def _offer(self) -> None:
        """Nobody waits for this: even if no training can start, the answers are on record."""
        try:
            await asyncio.sleep(TRAINING_PAUSE)
            with suppress(OSError, StoreError):
                await asyncio.to_thread(self._campaign.training.start_if_due)
        finally:
            self._offering = None
