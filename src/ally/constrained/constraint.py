r"""Per-sample constraints :math:`\ell'(f(x_i), y_i) \le \varepsilon_i` (CERM-b)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from ally.errors import InputError
from ally.types import FloatArray

Eps: TypeAlias = "float | str | Sequence[float] | Mapping[Any, float] | np.ndarray[Any, Any] | None"
"""A number, one number per sample, a mapping from class to number, ``"auto"``, or None for the paper's value."""

AUTO_FACTOR = 1.15
"""``"auto"`` is this times p_u, the mean ℓ' of an unconstrained fit: the middle of the paper's [1.05, 1.25]."""

PAPER_EPS = {"classification": 0.2, "regression": 0.1}
"""Nats of cross-entropy, and squared error of standardised targets (paper, section 5)."""


def resolve_eps(
    eps: Eps,
    targets: torch.Tensor,
    *,
    task: str,
    classes: Sequence[Any] | None,
    reference_loss: Callable[[], float],
) -> torch.Tensor:
    """ε as one float32 number per sample, shape (n,), on the device of `targets`.

    `reference_loss` is only called for ``"auto"``; it trains without constraints and returns p_u.
    """
    n = len(targets)
    if eps is None:
        eps = PAPER_EPS[task]
    if isinstance(eps, str):
        if eps != "auto":
            raise InputError.about(
                "eps", eps, "; pass a number, one per sample, a mapping from class to number, or 'auto'"
            )
        eps = AUTO_FACTOR * reference_loss()
    if isinstance(eps, Mapping):
        values = torch.tensor(_per_class(eps, classes), dtype=torch.float32, device=targets.device)[targets.long()]
    else:
        try:
            numbers = np.asarray(eps, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(f"eps is not a number or one number per sample ({error})") from error
        if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != n):
            raise InputError(
                f"eps has shape {numbers.shape} and there are {n} labelled samples; pass one number per sample"
            )
        values = torch.as_tensor(numbers, device=targets.device).expand(n).clone()
    if not bool(torch.isfinite(values).all()) or bool((values < 0).any()):
        bad = values[~(values >= 0) | ~torch.isfinite(values)][0].item()
        raise InputError(f"eps holds {bad}; constraint levels must be finite and >= 0")
    return values


def _per_class(eps: Mapping[Any, float], classes: Sequence[Any] | None) -> list[float]:
    if classes is None:
        raise InputError("eps maps classes to numbers, but the task is regression; pass a number or one per sample")
    missing = [name for name in classes if name not in eps]
    if missing:
        raise InputError(f"eps has no value for class {missing[0]!r}; give one for each of {list(classes)!r}")
    extra = [name for name in eps if name not in classes]
    if extra:
        raise InputError(f"eps has a value for {extra[0]!r}, which is not one of the classes {list(classes)!r}")
    if any(not isinstance(value, (int, float)) for value in eps.values()):
        raise InputError.about("eps", dict(eps), "holds something that is not a number")
    return [float(eps[name]) for name in classes]


@dataclass(frozen=True)
class Slacks:
    """A summary of the slacks s_i = ℓ'_i − ε_i, which are positive where the constraint is violated."""

    largest: float
    mean: float
    violation: float
    """Mean of [s_i]₊."""
    violated: float
    """Share of samples with s_i > 0."""

    @classmethod
    def of(cls, slacks: torch.Tensor) -> Slacks:
        excess = slacks.clamp(min=0)
        return cls(float(slacks.max()), float(slacks.mean()), float(excess.mean()), float((slacks > 0).float().mean()))


def find_residuals(duals: FloatArray, slacks: FloatArray, cap: float, slope: float = math.inf) -> FloatArray:
    """|λ − clip(λ + s − λ/ρ, 0, cap)|, (n,): 0 where λ would stay. ρ is the `slope` of a resilient problem."""
    return np.asarray(np.abs(duals - np.clip(duals + slacks - duals / slope, 0.0, cap)))
