"""A connection that whoever opened it cannot hold for nothing: whole requests arrive in time, answers are read in time.

Deadlines count from when a request could begin or began, and one byte now and then moves none of them. Where places run
out, whoever has kept the server waiting longest makes room, at the address that has the most places first.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ally.web.limits import shorten_address

BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 34\r\nConnection: close\r\n\r\n"
    b"this is no request by HTTP's rules"
)
"""As it is, since h11 would add to the answer to a HEAD or CONNECT what it then refuses."""


@dataclass(frozen=True)
class ConnectionLimits:
    """`most_of_address` is also the limit of a proxy's address: where one is in front, give it all of them."""

    head_seconds: float = 10.0
    """For the whole head of a request, and for what is still sent of one that was answered already."""
    idle_seconds: int = 30
    """Between two requests."""
    write_seconds: float = 30.0
    """In which whoever reads an answer takes `write_bytes` of it, or the rest."""
    write_bytes: int = 65_536
    most: int = 1000
    most_of_address: int = 500


class Connection(H11Protocol):
    """Its server calls `close_if_late` a few times a second."""

    def __init__(self, *parts: Any, limits: ConnectionLimits, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.limits = limits
        self.address = ""
        self.dropped = False
        self._since = self.loop.time()
        self._unread = 0
        self._unread_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = shorten_address(self.client[0] if self.client else "")
        self._since = self.loop.time()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        before, begins = self.cycle, self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        super().data_received(data)
        if begins or self.cycle is not before:
            self._since = self.loop.time()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """The only answer: none if one was begun, and none after it from a route that has the head of the request."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(BAD_REQUEST)
            self.transport.close()
        else:
            self.drop()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def close_if_late(self, now: float) -> None:
        if self._is_unread(now) or self._is_late(now):
            self.drop()

    def drop(self) -> None:
        """Whatever was not sent yet is not sent."""
        self.dropped = True
        self.transport.abort()

    def waits_since(self) -> float | None:
        """Since when the server waits for whoever is at the other end; None while it works on a request."""
        if self._waits_for_request() or self.transport.get_write_buffer_size():
            return self._since
        return None

    def _waits_for_request(self) -> bool:
        """For its head, its body, or the rest of a body that was answered before it was whole."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _is_late(self, now: float) -> bool:
        """Of a body that is read the guard measures the time, and uvicorn that between two requests."""
        if not self._waits_for_request() or not (self.cycle is None or self.cycle.response_complete):
            return False
        idle = self.cycle is not None and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        return not idle and now - self._since > self.limits.head_seconds

    def _is_unread(self, now: float) -> bool:
        unread = self.transport.get_write_buffer_size()
        if unread == 0:
            self._unread_since = None
        elif self._unread_since is None or unread <= self._unread - self.limits.write_bytes:
            self._unread_since, self._unread = now, unread
        return self._unread_since is not None and now - self._unread_since > self.limits.write_seconds

    def _make_room(self) -> None:
        """Nobody is refused while others only hold their places."""
        there = [one for one in self.connections if isinstance(one, Connection) and not one.dropped]
        of_address = sum(one.address == self.address for one in there)
        if of_address <= self.limits.most_of_address and len(there) < self.limits.most:
            return
        waiting = [(since, one) for one in there if one is not self and (since := one.waits_since()) is not None]
        crowded = self.address
        if of_address <= self.limits.most_of_address and waiting:
            ((crowded, _),) = Counter(one.address for _, one in waiting).most_common(1)
        longest = min(
            ((since, one) for since, one in waiting if one.address == crowded),
            key=lambda pair: pair[0],
            default=(0.0, self),
        )
        longest[1].drop()
