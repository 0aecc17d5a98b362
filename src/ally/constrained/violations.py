r"""What a constraint on a prediction measures, ℓ', and the dual of a sample whose label is not known.

In the resilient problem every constraint ℓ'_i ≤ ε_i has a slack u_i ≥ 0 at a price h:

.. math:: \min_{f,\, u \ge 0}\; \frac1n\sum_i \ell_i + \frac1n\sum_i h(u_i)
          \quad\text{s.t.}\quad \ell'_i \le \varepsilon_i + u_i

with :math:`h(u) = \rho u^2 / 2` up to :math:`u = \kappa / \rho` and the slope κ beyond. Stationarity in u gives the
dual in closed form, :math:`\lambda_i = \min(\rho\,[\ell'_i - \varepsilon_i]_+, \kappa)`.

A class is measured under each label; a number under y ~ N(f, t²), where t is the spread of its prediction in units of
the pool's median spread, so that level, slope and cap are plain numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import torch

from ally.types import CLASSIFICATION, REGRESSION, Task


@runtime_checkable
class ClassConstraint(Protocol):
    """A frozen dataclass that measures class probabilities."""

    tasks: ClassVar[frozenset[Task]]

    def measure_labels(self, p: torch.Tensor) -> torch.Tensor:
        """ℓ' under every label, (n, C), of probabilities (n, C), float64."""
        ...


@runtime_checkable
class NumberConstraint(Protocol):
    """A frozen dataclass that measures the error of a predicted number."""

    tasks: ClassVar[frozenset[Task]]

    def average_dual(self, spread: torch.Tensor, level: float, slope: float, cap: float) -> torch.Tensor:
        """E min(ρ[ℓ' − ε]₊, κ) over y ~ N(f, t²), (n,), of spreads t (n,), float64: ρ ∫ P(ℓ' > v) dv from ε to
        ε + κ/ρ."""
        ...


Constraint: TypeAlias = ClassConstraint | NumberConstraint


@dataclass(frozen=True)
class MarginViolation:
    """1 − p_y + max_{k≠y} p_k: how far label y is from winning by a margin of 1."""

    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def measure_labels(self, p: torch.Tensor) -> torch.Tensor:
        others, doubt, top = split_top(p)
        values = 1.0 - p + p.gather(1, top)
        return values.scatter(1, top, (doubt + others.amax(1))[:, None])


@dataclass(frozen=True)
class ProbabilityShortfall:
    """1 − p_y: how far label y is from certain."""

    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def measure_labels(self, p: torch.Tensor) -> torch.Tensor:
        _, doubt, top = split_top(p)
        return (1.0 - p).scatter(1, top, doubt[:, None])


@dataclass(frozen=True)
class CrossEntropy:
    """−log p_y, in nats."""

    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def measure_labels(self, p: torch.Tensor) -> torch.Tensor:
        _, doubt, top = split_top(p)
        values = -p.clamp(min=torch.finfo(p.dtype).tiny).log()
        return values.scatter(1, top, -torch.log1p(-doubt)[:, None])


@dataclass(frozen=True)
class AbsoluteError:
    """|y − f|, in median spreads of the pool."""

    tasks: ClassVar[frozenset[Task]] = REGRESSION

    def average_dual(self, spread: torch.Tensor, level: float, slope: float, cap: float) -> torch.Tensor:

        def integrate(bound: float) -> torch.Tensor:
            """∫ P(|y − f| > v) dv up to the bound."""
            z = _in_spreads(bound, spread)
            return bound * torch.erfc(z) - math.sqrt(2 / math.pi) * spread * torch.exp(-z.square())

        return (slope * (integrate(level + cap / slope) - integrate(level))).clamp(0.0, cap)


@dataclass(frozen=True)
class SquaredError:
    """(y − f)², in squared median spreads of the pool."""

    tasks: ClassVar[frozenset[Task]] = REGRESSION

    def average_dual(self, spread: torch.Tensor, level: float, slope: float, cap: float) -> torch.Tensor:

        def integrate(bound: float) -> torch.Tensor:
            """∫ P((y − f)² > v) dv up to the bound: 2w P(|y − f| > w) dw up to its root."""
            root = math.sqrt(bound)
            z = _in_spreads(root, spread)
            tail = math.sqrt(2 / math.pi) * spread * root * torch.exp(-z.square())
            return bound * torch.erfc(z) + spread.square() * torch.erf(z) - tail

        return (slope * (integrate(level + cap / slope) - integrate(level))).clamp(0.0, cap)


def _in_spreads(bound: float, spread: torch.Tensor) -> torch.Tensor:
    """bound / (√2 t): P(|y − f| > bound) = erfc of it, which is 0 for a spread of 0."""
    return (bound / (math.sqrt(2) * spread)).nan_to_num(nan=math.inf, posinf=math.inf)


def split_top(p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The entries other than the largest, (n, C) with 0 in its place; their sum 1 − p_max, (n,); and the place of the
    largest, (n, 1).

    Probabilities are float32, so 1 − p_max would round to 0 for confident samples; the sum of the others does not.
    """
    top = p.argmax(1, keepdim=True)
    others = p.scatter(1, top, 0.0)
    return others, others.sum(1), top
