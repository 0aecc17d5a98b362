"""Events for everyone who listens: answers of others, trainings, new models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from ally.campaign import Campaign
from ally.errors import StoreError
from ally.web.schemas import PulseInfo

PAUSE = 1.0
"""Seconds between two polls of the campaign: other programs may change it."""
KEEP_ALIVE = 15.0
MOST_STREAMS, MOST_OF_ONE = 300, 8


class Events:
    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._streams: dict[asyncio.Queue[str | None], str] = {}
        self._last: PulseInfo | None = None
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def full(self, annotator: str) -> bool:
        mine = sum(name == annotator for name in self._streams.values())
        return self._closed or len(self._streams) >= MOST_STREAMS or mine >= MOST_OF_ONE

    async def stream(self, annotator: str) -> AsyncIterator[str]:
        queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=100)
        self._streams[queue] = annotator
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        elif self._last is not None:
            queue.put_nowait(_line(self._last))
        try:
            yield "retry: 1000\n\n"
            while not self._closed:
                try:
                    line = await asyncio.wait_for(queue.get(), KEEP_ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if line is None:
                    return
                yield line
        finally:
            del self._streams[queue]

    async def _watch(self) -> None:
        """Polls while anyone listens."""
        self._last = None
        while self._streams and not self._closed:
            with suppress(StoreError):  # it is retried, and whoever answers gets the error
                pulse = await asyncio.to_thread(self._look)
                if pulse != self._last:
                    self._last = pulse
                    self._send(_line(pulse))
            await asyncio.sleep(PAUSE)

    def _look(self) -> PulseInfo:
        found = self._campaign.page.pulse()
        now_at = found.underway
        return PulseInfo(
            last_answer=found.last_answer,
            labels=self._campaign.page.label_count(),
            model=found.model,
            training=found.training,
            stage=None if now_at is None else now_at.stage,
            share=None if now_at is None or now_at.share is None else round(min(0.99, now_at.share), 2),
        )

    def _send(self, line: str | None) -> None:
        for queue in list(self._streams):
            with suppress(asyncio.QueueFull):  # a client that does not read gets the next one
                queue.put_nowait(line)

    def close(self) -> None:
        self._closed = True
        self._send(None)


def _line(pulse: PulseInfo) -> str:
    """The event as it is sent to every client."""
    return f"event: pulse\ndata: {pulse.model_dump_json()}\n\n"
