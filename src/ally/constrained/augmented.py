"""What the method of multipliers minimises in place of a constraint, and what a priced slack costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ally.types import FloatArray


@dataclass(frozen=True)
class Augmented:
    """max over 0 ≤ μ ≤ cap of μ s - (μ - λ)² / (2ρ), a smooth function of the slack s = ℓ - ε."""

    duals: FloatArray
    eps: FloatArray
    cap: float
    rho: float
    risk: float

    def move_duals(self, losses: FloatArray) -> FloatArray:
        return np.clip(self.duals + self.rho * (losses - self.eps), 0, self.cap)

    def value(self, losses: FloatArray) -> FloatArray:
        moved = self.move_duals(losses)
        return np.asarray(
            self.risk * losses + moved * (losses - self.eps) - np.square(moved - self.duals) / (2 * self.rho)
        )

    def slope(self, losses: FloatArray) -> FloatArray:
        return self.risk + self.move_duals(losses)

    def bend(self, losses: FloatArray) -> FloatArray:
        free = self.duals + self.rho * (losses - self.eps)
        return np.where((free > 0) & (free < self.cap), self.rho, 0.0)
