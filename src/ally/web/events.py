"""Events for everyone who listens: answers of others, trainings, new models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ally.campaign import Campaign
from ally.errors import StateUnavailable, StoreBusy, StoreError, StoreUnreachable
from ally.web.access import Access, Person
from ally.web.routing import write_json
from ally.web.schemas import PulseInfo

PAUSE = 1.0
"""Seconds between two polls of the campaign: other programs may change it; and between two looks at who may listen."""
KEEP_ALIVE = 15.0
MOST_STREAMS, MOST_OF_ONE = 300, 8


@dataclass(eq=False)
class Listener:
    """Who listens, and the cookies that let them in."""

    person: Person
    cookies: Sequence[str]
    lines: asyncio.Queue[str | None] = field(default_factory=lambda: asyncio.Queue(maxsize=100))
    ended: bool = False

    def end(self) -> None:
        self.ended = True
        with suppress(asyncio.QueueFull):  # it looks at `ended` after each line
            self.lines.put_nowait(None)


class Events:
    def __init__(self, campaign: Campaign, access: Access) -> None:
        self._campaign = campaign
        self._access = access
        self._listeners: set[Listener] = set()
        self._last: PulseInfo | None = None
        self._closed = False
        self._watching: asyncio.Task[None] | None = None
        self._guarding: asyncio.Task[None] | None = None

    def open(self, person: Person, cookies: Sequence[str]) -> EventStream | None:
        """A stream of events with its place taken; None if this person or the server has no place left."""
        mine = sum(listener.person.annotator == person.annotator for listener in self._listeners)
        if self._closed or len(self._listeners) >= MOST_STREAMS or mine >= MOST_OF_ONE:
            return None
        listener = Listener(person, cookies)
        self._listeners.add(listener)
        return EventStream(self, listener)

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    async def stream(self, listener: Listener) -> AsyncIterator[str]:
        if self._guarding is None or self._guarding.done():
            self._guarding = asyncio.create_task(self._send_away())
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        elif self._last is not None:
            listener.lines.put_nowait(_line(self._last))
        yield "retry: 1000\n\n"
        while not self._closed and not listener.ended:
            try:
                line = await asyncio.wait_for(listener.lines.get(), KEEP_ALIVE)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if line is None or listener.ended:
                return
            yield line

    async def _watch(self) -> None:
        """Polls while anyone listens."""
        self._last = None
        while self._listeners and not self._closed:
            with suppress(StoreError):  # it is retried, and whoever answers gets the error
                pulse = await asyncio.to_thread(self._look)
                if pulse != self._last:
                    self._last = pulse
                    self._send(_line(pulse))
            await asyncio.sleep(PAUSE)

    async def _send_away(self) -> None:
        """Ends the streams of those who may not listen any more, and all of them if that cannot be known."""
        try:
            while self._listeners and not self._closed:
                await asyncio.sleep(PAUSE)
                with suppress(StoreBusy, StoreUnreachable):  # nothing can be sent either until it is back
                    admitted = await self._access.admitted()
                    for listener in self._listeners:
                        if self._access.find_person(admitted, listener.cookies) != listener.person:
                            listener.end()
        except (StateUnavailable, StoreError):
            return
        finally:
            self._end_all()

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

    def _send(self, line: str) -> None:
        for listener in self._listeners:
            with suppress(asyncio.QueueFull):  # a client that does not read gets the next one
                listener.lines.put_nowait(line)

    def close(self) -> None:
        self._closed = True
        self._end_all()

    def _end_all(self) -> None:
        for listener in list(self._listeners):
            listener.end()


class EventStream(StreamingResponse):
    """Gives its place back when it is over, also if it never began."""

    def __init__(self, events: Events, listener: Listener) -> None:
        super().__init__(events.stream(listener), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._events, self._listener = events, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._events.leave(self._listener)


def _line(pulse: PulseInfo) -> str:
    """The event as it is sent to every client."""
    return f"event: pulse\ndata: {write_json(pulse)}\n\n"
