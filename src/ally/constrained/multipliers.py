r"""Dual variables, one per constraint, kept non-negative by projected ascent."""

from __future__ import annotations

import torch

from ally.errors import InputError


class Multipliers:
    r"""λ ∈ ℝⁿ₊ as a float32 tensor on the training device; a step touches only the rows of its batch.

    .. math:: \lambda_i \leftarrow \left[\lambda_i + \eta_d\, s_i\right]_+
    """

    def __init__(
        self, n: int, *, start: float = 0.0, device: torch.device | str = "cpu", cap: float | None = None
    ) -> None:
        if not start >= 0:
            raise InputError.about("dual_init", start, "must be a number >= 0")
        self.values = torch.full((n,), float(start), device=device)
        self._cap = cap

    def ascend(self, index: torch.Tensor, slacks: torch.Tensor, step: float) -> None:
        """One projected gradient step for the constraints at `index` (b,), given their slacks (b,)."""
        moved = self.values[index].add_(slacks.detach(), alpha=step).clamp_(min=0.0, max=self._cap)
        self.values[index] = moved

    def positive_share(self) -> float:
        """Share of constraints with λ > 0."""
        return float((self.values > 0).float().mean())
