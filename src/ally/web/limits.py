"""Rate limit per client: a token bucket."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_CLIENTS = 10_000


@dataclass
class Buckets:
    """`rate` requests a second for each client, and `burst` at once."""

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def empty(self, client: str) -> bool:
        """Whether the next request would be refused; nothing is taken."""
        level, at = self._levels.get(client, (self.burst, self.clock()))
        return level + (self.clock() - at) * self.rate < 1.0

    def allow(self, client: str) -> bool:
        now = self.clock()
        level, at = self._levels.pop(client, (self.burst, now))
        level = min(self.burst, level + (now - at) * self.rate)
        allowed = level >= 1.0
        self._levels[client] = (level - 1.0 if allowed else level, now)
        if len(self._levels) > MOST_CLIENTS:
            self._levels.popitem(last=False)
        return allowed
