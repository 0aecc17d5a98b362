"""What duals and slacks say about a problem, in sentences that tell what to do."""

from __future__ import annotations

import numpy as np

from ally.constrained.convex import UNBOUNDED
from ally.types import FloatArray

STILL = 0.01
"""Duals are taken for optimal if none would move by more than this."""
MOST_VIOLATED = 0.5
"""A network is said to be far from its constraints if it violates more than this share of them."""


def find_trouble(duals: FloatArray, slacks: FloatArray, residual: float) -> tuple[str, ...]:
    """Notes about duals (n,) that were to be optimal: whether the constraints can be met, and whether λ is found."""
    unbounded = int((duals >= UNBOUNDED).sum())
    if unbounded:
        return (
            f"these constraints cannot be met: λ grows without bound for {unbounded} of {len(duals)} samples (it was "
            f"stopped at {UNBOUNDED:g}), and the largest loss stays {float(slacks.max()):.3g} above eps; raise eps, "
            "bound λ by dual_cap=, or pay for slack by objective='resilient'",
        )
    if residual > STILL:
        return (
            f"the duals are {residual:.2g} from their optimum (the largest slack is {float(slacks.max()):.3g}): either "
            "the constraints cannot be met, or λ needs more moves; raise eps, bound λ by dual_cap=, or use a model "
            "that is solved exactly, such as 'linear'",
        )
    return ()


def find_distance(slacks: FloatArray) -> tuple[str, ...]:
    """Notes about the slacks (n,) that a network is left with after its last step."""
    violated = float((slacks > 0).mean())
    if violated <= MOST_VIOLATED:
        return ()
    return (
        f"training ended with {violated:.0%} of the constraints violated, by {float(slacks.clip(0).mean()):.3g} on "
        "average: λ was still growing, and says how long a loss stayed above eps; train for more epochs, or raise eps",
    )


def find_ties(duals: FloatArray) -> tuple[str, ...]:
    """A note if all duals (n,) that are known are at their bound."""
    duals = duals[~np.isnan(duals)]
    if len(duals) < 2 or not float(duals.min()) == float(duals.max()) > 0:
        return ()
    level = f"{float(duals.max()):.3g}"
    return (f"every dual is at its cap, {level}, so they rank nothing: raise eps or dual_cap, or lower slope",)
