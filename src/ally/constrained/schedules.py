"""Diminishing step sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Power:
    """``start * t**-power`` for t = 1, 2, …: the dual step."""

    start: float
    power: float = 1 / 16

    def __call__(self, t: int) -> float:
        return self.start * float(t**-self.power)


@dataclass(frozen=True)
class Geometric:
    """``start * factor**(t-1)`` for t = 1, 2, …: the primal step."""

    start: float
    factor: float = 0.97

    def __call__(self, t: int) -> float:
        return self.start * float(self.factor ** (t - 1))
