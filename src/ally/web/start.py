"""Prepares a server for a campaign: access, host names, and what to print."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

from ally.campaign import Campaign
from ally.campaign.people import user
from ally.errors import InputError
from ally.web.access import Access, Person
from ally.web.app import Page
from ally.web.server import LOOPBACK, hosts, listen, serve

TRIED = 20


@dataclass(frozen=True)
class Plan:
    """How to serve. `port` None takes `first` or the next that is free."""

    share: bool = False
    annotators: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    port: int | None = 0
    first: int = 8642
    rate: float = 100.0


@dataclass(frozen=True)
class Ready:
    """`address` is for whoever started it; `lines` are to be printed when the page can be opened."""

    page: Page
    socket: socket.socket
    address: str
    lines: tuple[str, ...]

    def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        serve(self.page, [self.socket], ready)


def prepare(campaign: Campaign, plan: Plan) -> Ready:
    me = plan.annotators[0] if plan.annotators and not plan.share else user()
    access = Access(campaign, None if plan.share else Person(me, "owner"))
    opened = _listen("0.0.0.0" if plan.share else "127.0.0.1", plan)
    port = opened.getsockname()[1]
    names = [*LOOPBACK, *(_own_names() if plan.share else ()), *(host.rpartition("://")[2] for host in plan.hosts)]
    page = Page(campaign, access, hosts(names, port), rate=plan.rate)
    here = f"http://127.0.0.1:{port}/"
    if not plan.share:
        return Ready(page, opened, here, (f"{campaign.name}: label at {here} (Ctrl-C ends it)",))
    mine = f"{here}#{access.new_link(me, 'owner')}"
    first = (plan.hosts or _own_names() or ("127.0.0.1",))[0]
    outside = f"{first.rstrip('/')}/" if "://" in first else f"http://{first}:{port}/"
    lines = [f"{campaign.name}: shared at {outside} (Ctrl-C ends it). Each link works once.", f"  you (owner)  {mine}"]
    lines += [f"  {name}  {outside}#{access.new_link(name)}" for name in plan.annotators if name != me]
    lines.append("  Nobody between you and them should read along: put a proxy with TLS in front (docs/security.md).")
    return Ready(page, opened, mine, tuple(lines))


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
