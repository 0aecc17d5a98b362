"""Runs the page until it is interrupted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ally.errors import InputError
from ally.web.app import Page

MOST_AT_ONCE = 1000
HEAD_SECONDS = 10.0
"""How long a connection may take to send its headers."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Impatient(H11Protocol):
    """Closes a connection that has not sent the head of its first request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head = self.loop.call_later(HEAD_SECONDS, self._late)

    def _late(self) -> None:
        if self.cycle is None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head.cancel()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """Announces when it is ready, and closes event streams on shutdown."""

    def __init__(self, page: Page, ready: Callable[[], None]) -> None:
        config = uvicorn.Config(
            page.app,
            http=Impatient,
            ws="none",
            lifespan="on",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=MOST_AT_ONCE,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=32_768,
        )
        super().__init__(config)
        self._page = page
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._page.events.close()
        super().handle_exit(sig, frame)


def listen(address: str, port: int) -> socket.socket:
    """A socket at the port, or at any that is free for 0."""
    found = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections have it from here: the head and the body of an answer are two packets, and would wait for each other.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        found.bind((address, port))
    except OSError as error:
        found.close()
        raise InputError.about(
            "port", port, f"cannot be used ({error.strerror}); choose another, or 0 for any"
        ) from error
    return found


def hosts(names: Iterable[str], port: int) -> list[str]:
    """Host headers under which the server may be called; a name that has a port, or none behind a proxy, stays."""
    found = []
    for name in names:
        found += [name, f"{name}:{port}"] if port not in (80, 443) else [name]
    return found


def serve(page: Page, sockets: list[socket.socket], ready: Callable[[], None] = lambda: None) -> None:
    """Returns when the process is interrupted or terminated."""
    server: Any = Server(page, ready)
    with suppress(KeyboardInterrupt):  # raised again by uvicorn when all is closed
        server.run(sockets=sockets)
