"""Limits per client: requests a second by a token bucket, and requests at once; and who is one client."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

MOST_CLIENTS = 10_000
HOST_BITS = 64
"""Of an IPv6 address, the bits that whoever has it chooses freely."""


@dataclass
class Buckets:
    """`rate` requests a second for each client, and `burst` at once."""

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def allow(self, client: str) -> bool:
        now = self.clock()
        level, at = self._levels.pop(client, (self.burst, now))
        level = min(self.burst, level + (now - at) * self.rate)
        allowed = level >= 1.0
        self._levels[client] = (level - 1.0 if allowed else level, now)
        if len(self._levels) > MOST_CLIENTS:
            self._levels.popitem(last=False)
        return allowed

    def give_back(self, client: str) -> None:
        """The last request of this client did not count."""
        level, at = self._levels.get(client, (self.burst, self.clock()))
        self._levels[client] = (min(self.burst, level + 1.0), at)


class RequestTurns:
    """At most `most` requests of one person are worked on at once, the others wait: no one takes all threads."""

    def __init__(self, most: int) -> None:
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(most))

    def of(self, person: str) -> asyncio.Semaphore:
        return self._turns[person]


def client_of(scope: Scope) -> str:
    """The address that a request comes from."""
    return shorten_address(str((scope.get("client") or ("",))[0]))


def shorten_address(address: str) -> str:
    """Of an IPv6 address the network: its owner has all addresses in it."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(found) if found.is_loopback else f"{IPv6Address(int(found) >> HOST_BITS << HOST_BITS)}/{HOST_BITS}"
