"""An engine on Ray whose actors are killed, for real, while they work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ally.execution import ray as on_ray
from ally.execution.ray import RayCrew, RayEngine


@dataclass(frozen=True)
class Killer:
    """Kills the process of an actor before calls of these numbers, or with this chance before any."""

    before: frozenset[int] = frozenset()
    chance: float = 0.0
    seed: int = 0
    most: int = 1000
    killed: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=lambda: [0])

    def __call__(self, crew: RayCrew) -> None:
        number = self.calls[0]
        self.calls[0] += 1
        draws = np.random.default_rng((self.seed, number))
        if number in self.before or (len(self.killed) < self.most and draws.random() < self.chance):
            actor = crew._hosts.actors[int(draws.integers(len(crew._used)))]
            process = on_ray._ray().get(actor.ready.remote())
            os.kill(process, signal.SIGKILL)
            self.killed.append(process)


class MortalCrew(RayCrew):
    killer: Killer

    def _call(self, messages: Any) -> list[Any]:
        self.killer(self)
        return super()._call(messages)


@dataclass(frozen=True)
class MortalEngine(RayEngine):
    killer: Killer = Killer()

    def crew(self, parts: Sequence[Any], build: Callable[[Any], Any]) -> RayCrew:
        on_ray.connect(self.address)
        kind = type("MortalCrew", (MortalCrew,), {"killer": self.killer})
        return kind(on_ray.hosts(self._width), parts, build)
