r"""Dual variables, one per constraint, kept non-negative by projected ascent."""

from __future__ import annotations

import math

import torch

from ally.errors import InputError


class Multipliers:
    r"""λ ∈ ℝⁿ₊ as a float32 tensor on the training device; a step touches only the rows of its batch.

    .. math:: \lambda_i \leftarrow \operatorname{clip}(\lambda_i + \eta_d\, s_i,\; 0,\; \kappa)

    A `cap` κ on λ is a linear price κu of a slack u in each constraint. A `slope` ρ is a quadratic price ρu²/2 up to
    u = κ/ρ, with which λ also decays:

    .. math:: \lambda_i \leftarrow \operatorname{clip}(\lambda_i + \eta_d\,(s_i - \lambda_i / \rho),\; 0,\; \kappa)
    """

    def __init__(
        self,
        n: int,
        *,
        start: float = 0.0,
        device: torch.device | str = "cpu",
        cap: float | None = None,
        slope: float = math.inf,
    ) -> None:
        if not start >= 0:
            raise InputError.about("dual_init", start, "must be a number >= 0")
        self.values = torch.full((n,), float(start), device=device)
        self._cap = cap
        self._slope = slope

    def ascend(self, index: torch.Tensor, slacks: torch.Tensor, step: float) -> None:
        """One projected gradient step for the constraints at `index` (b,), given their slacks (b,)."""
        # A step of ρ lands on ρs, where λ rests; a longer one would overshoot.
        step = min(step, self._slope)
        decayed = self.values[index].mul_(1.0 - step / self._slope)
        moved = decayed.add_(slacks.detach(), alpha=step).clamp_(min=0.0, max=self._cap)
        self.values[index] = moved

    def positive_share(self) -> float:
        """Share of constraints with λ > 0."""
        return float((self.values > 0).float().mean())
