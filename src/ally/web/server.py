"""Serves a campaign's page: who may come, at which address, and the server that runs until it is interrupted."""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from ally.campaign import Campaign
from ally.campaign.people import user
from ally.errors import InputError
from ally.web.access import Person, open_access
from ally.web.app import Page
from ally.web.connection import Connection, ConnectionLimits

CHECKED_EVERY = 3
"""Ticks of the server, ten a second, between two looks for connections that are late."""
BACKLOG = 100
"""Connections that are accepted in one go: all of them are open files before the first can be refused."""
TRIED = 20
"""Ports to try for a free one."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Plan:
    """How to serve. `port` None takes `first` or the next that is free; `listen` None the addresses that `hosts` need.
    `key_file` holds the key of machines that share a campaign on a database server."""

    share: bool = False
    annotators: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    listen: str | None = None
    port: int | None = 0
    first: int = 8642
    rate: float = 100.0
    key_file: Path | None = None
    limits: ConnectionLimits = ConnectionLimits()


@dataclass(frozen=True)
class Ready:
    """`address` is for whoever started it; `lines` are to be printed when the page can be opened."""

    page: Page
    socket: socket.socket
    address: str
    lines: tuple[str, ...]
    limits: ConnectionLimits

    def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        """Returns when the process is interrupted or terminated."""
        server: Any = Server(self.page, ready, self.limits)
        gc.collect()
        gc.freeze()  # what is there now stays: nobody should wait while all modules are looked through
        with suppress(KeyboardInterrupt):  # raised again by uvicorn when all is closed
            server.run(sockets=[self.socket])


def prepare(campaign: Campaign, plan: Plan) -> Ready:
    me = plan.annotators[0] if plan.annotators and not plan.share else user()
    access, problem = open_access(campaign, None if plan.share else Person(me, "owner"), plan.key_file)
    address = choose_address(plan)
    opened = _listen(address, plan)
    port = opened.getsockname()[1]
    mine = _in_url("127.0.0.1" if address in EVERYWHERE else address)
    own = _own_names() if address in EVERYWHERE else (mine, socket.gethostname())
    names = [*LOOPBACK, mine, *(own if plan.share else ()), *(host.rpartition("://")[2] for host in plan.hosts)]
    page = Page(campaign, access, hosts(dict.fromkeys(names), port), rate=plan.rate)
    here = f"http://{mine}:{port}/"
    limits = choose_limits(plan)
    if not plan.share:
        return Ready(page, opened, here, (f"{campaign.name}: label at {here} (Ctrl-C ends it)",), limits)
    others = [name for name in plan.annotators if name != me]
    secret, *more = access.new_links([Person(me, "owner"), *(Person(name, "annotator") for name in others)])
    first = (plan.hosts or own or (mine,))[0]
    outside = f"{first.rstrip('/')}/" if "://" in first else f"http://{first}:{port}/"
    lines = [f"{campaign.name}: shared at {outside} (Ctrl-C ends it). Each link works once."]
    lines += [f"  you (owner)  {here}#{secret}"]
    lines += [f"  {name}  {outside}#{secret}" for name, secret in zip(others, more, strict=True)]
    lines += [f"  {problem}"] if problem else []
    lines.append("  Nobody between you and them should read along: put a proxy with TLS in front (docs/security.md).")
    return Ready(page, opened, f"{here}#{secret}", tuple(lines), limits)


def choose_limits(plan: Plan) -> ConnectionLimits:
    """Half of the files that this process may open at most; all from one address where that is a proxy's."""
    most = min(plan.limits.most, _raise_file_limit(2 * plan.limits.most) // 2)
    of_address = most if any("://" in host for host in plan.hosts) else min(plan.limits.most_of_address, most)
    return replace(plan.limits, most=most, most_of_address=of_address)


def _raise_file_limit(wanted: int) -> int:
    """How many files this process may open then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    possible = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def choose_address(plan: Plan) -> str:
    """Where to listen: on this machine alone, unless others are to come, and not through a proxy on this machine."""
    if plan.listen is not None:
        try:
            return str(ip_address(plan.listen.strip("[]")))
        except ValueError as error:
            raise InputError.about(
                "listen", plan.listen, "is not an IP address; give one of this machine, 0.0.0.0 or :: for all"
            ) from error
    for_others = not plan.hosts or any("://" not in host and host not in LOOPBACK for host in plan.hosts)
    return "0.0.0.0" if plan.share and for_others else "127.0.0.1"


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _listen(address: str, plan: Plan) -> socket.socket:
    if plan.port is not None:
        return listen(address, plan.port)
    for port in range(plan.first, plan.first + TRIED):
        try:
            return listen(address, port)
        except InputError:
            continue
    return listen(address, 0)


def _own_names() -> tuple[str, ...]:
    """The machine's name, and the address by which it reaches others; nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = str(probe.getsockname()[0])
        except OSError:
            address = ""
    return tuple(name for name in (address, socket.gethostname()) if name)


class Server(uvicorn.Server):
    """Announces when it is ready, and closes event streams on shutdown."""

    def __init__(self, page: Page, ready: Callable[[], None], limits: ConnectionLimits = ConnectionLimits()) -> None:
        connection: Any = partial(Connection, limits=limits)
        config = uvicorn.Config(
            page.app,
            http=connection,
            ws="none",
            lifespan="on",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=limits.most,
            timeout_keep_alive=limits.idle_seconds,
            backlog=BACKLOG,
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

    async def on_tick(self, counter: int) -> bool:
        if counter % CHECKED_EVERY == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.close_if_late(now)
        return await super().on_tick(counter)

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
        if address == "::":  # all addresses of this machine, as 0.0.0.0, and those of IPv6
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
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
