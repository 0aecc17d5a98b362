"""Conjugate gradients for the systems of Newton steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ally.types import FloatArray

CG_STEPS = 500


def follow_conjugates(
    product: Callable[[FloatArray], FloatArray],
    wanted: FloatArray,
    scale: FloatArray,
    accuracy: float,
    most: int = CG_STEPS,
) -> FloatArray:
    """x with product(x) ≈ wanted, preconditioned by `scale`, to `accuracy` relative to `wanted`."""
    x = np.zeros_like(wanted)
    residual = wanted.copy()
    z = residual / scale
    direction = z.copy()
    power = float((residual * z).sum())
    goal = accuracy**2 * power
    for _ in range(most):
        bent = product(direction)
        curvature = float((direction * bent).sum())
        if curvature <= 1e-300:
            break
        alpha = power / curvature
        x += alpha * direction
        residual -= alpha * bent
        z = residual / scale
        now = float((residual * z).sum())
        if now <= goal:
            break
        direction = z + (now / power) * direction
        power = now
    return x if x.any() else wanted / scale
