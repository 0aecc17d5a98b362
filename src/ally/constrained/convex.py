r"""Linear models with per-sample constraints, solved to optimality in parameters and duals.

.. math:: \min_{W, b}\; \frac{a}{n}\sum_i \ell_i + \frac{1}{2 C n}\lVert W\rVert^2
          \quad\text{s.t.}\quad \ell_i \le \varepsilon_i

with :math:`a = 1` (CERM) or 0 (feasibility). The penalty is that of scikit-learn's ``LogisticRegression(C)`` for three
or more classes (for two, its C is twice ours); for squared error it is ``Ridge(alpha=1 / (2 C))``. The intercept b is
not penalised. As elsewhere, the Lagrangian contains the mean of λ_i s_i, so the derivative of the optimum with respect
to ε_i is −λ_i / n.

An upper bound on λ turns each constraint into the exact penalty :math:`\lambda_{\max} [\ell_i - \varepsilon_i]_+`. If
all constraints can hold and no dual exceeds the bound, nothing changes. If they cannot, there is still a solution.

The resilient problem prices a slack u by ρu²/2 up to :math:`u = \lambda_{\max} / \rho`, and linearly beyond. That is a
smooth penalty of :math:`\ell_i - \varepsilon_i`, so one minimisation solves it, and its slope at the optimum is
:math:`\lambda_i = \min(\rho\,[\ell_i - \varepsilon_i]_+, \lambda_{\max})`.

Without that price it is the method of multipliers:
:math:`\lambda \leftarrow \operatorname{clip}(\lambda + \rho s, 0, \lambda_{\max})` after each exact minimisation of the
augmented Lagrangian. Newton steps minimise; their systems are solved by conjugate gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from ally.constrained.augmented import Augmented
from ally.constrained.conjugates import follow_conjugates
from ally.errors import TrainingDiverged
from ally.types import FloatArray, IntArray

UNBOUNDED = 1e5
"""The bound on λ that stands for none: where constraints cannot be met together, λ grows without end and stops here."""
TOLERANCE = 1e-8
"""Tolerance for the gradient's length in units of the curvature (half its square is what is left to gain), and for the
distance of λ from clip(λ + s, 0, cap)."""
ROUNDING = 1e-14
"""Rounding error of the objective in float64, as a share: a Newton step is accepted if it seems to lose less."""
RANK = 1e-12
"""With more features than rows, directions whose variance is below this share of the largest are dropped."""
ACCEPTED = 1e-4
"""The longest gradient, in those units, of a minimisation that float64 ends before its tolerance."""
MULTIPLIER_STEPS, NEWTON_STEPS = 200, 100


class Design:
    """The rows of X, dense (n, d) or sparse, in their principal axes: (n, r) with r at most min(n, d).

    Weights have the same norm in these axes as in the features, so everything is solved here, however large d is.
    """

    def __init__(self, X: Any) -> None:
        n, d = X.shape
        dense: Any = X if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
        self._X: Any = dense.astype(np.float64) if dense.dtype != np.float64 else dense
        self.mean: FloatArray = np.asarray(self._X.mean(axis=0)).reshape(-1)
        if d <= n:
            values = self._X.toarray() if hasattr(self._X, "toarray") else self._X
            centred = values - self.mean
            self._axes: FloatArray | None = np.linalg.eigh(centred.T @ centred)[1][:, ::-1] if d else np.empty((0, 0))
            self.rows: FloatArray = centred @ self._axes
            return
        gram = self._X @ self._X.T
        gram = gram.toarray() if hasattr(gram, "toarray") else gram
        gram -= gram.mean(axis=0) + gram.mean(axis=1, keepdims=True) - gram.mean()
        found, vectors = (values[..., ::-1] for values in np.linalg.eigh(gram))
        kept = found > RANK * max(float(found[0]), 1e-300)
        self._roots = np.sqrt(found[kept])
        self._vectors = vectors[:, kept]
        self._axes = None
        self.rows = self._vectors * self._roots

    def features(self, weights: FloatArray) -> FloatArray:
        """Weights (r, K) of the axes as weights (d, K) of the features."""
        if self._axes is not None:
            return np.asarray(self._axes @ weights)
        return np.asarray(self._X.T @ (self._vectors @ (weights / self._roots[:, None])))

    def axes(self, most: int) -> FloatArray:
        """(d, at most `most`): unit directions, those in which the rows vary most first."""
        return self.features(np.eye(self.rows.shape[1])[:, :most])

    @property
    def spread(self) -> float:
        """Mean squared distance of a row from the mean."""
        return float(np.square(self.rows).sum() / max(1, len(self.rows)))


class Slopes(NamedTuple):
    """Losses (n,), their gradients in the outputs (n, K), and a product with their Hessians (n, K, K)."""

    losses: FloatArray
    gradient: FloatArray
    curve: Callable[[FloatArray], FloatArray]
    """(n, K) → (n, K): each row times the Hessian of its loss."""
    diagonal: FloatArray
    """(n, K) of the Hessians."""


class PerSampleLoss(Protocol):
    """A convex loss of outputs (n, K) and targets (n,)."""

    def __call__(self, outputs: FloatArray, targets: Any) -> Slopes: ...


def cross_entropy(outputs: FloatArray, targets: IntArray) -> Slopes:
    """Cross-entropy of class numbers (n,) under the softmax of outputs (n, K)."""
    rows = np.arange(len(targets))
    shifted = outputs - outputs.max(axis=1, keepdims=True)
    exponents = np.exp(shifted)
    total = exponents.sum(axis=1, keepdims=True)
    p = exponents / total
    losses = np.log(total[:, 0]) - shifted[rows, targets]
    gradient = p.copy()
    gradient[rows, targets] -= 1

    def curve(direction: FloatArray) -> FloatArray:
        weighted = p * direction
        return np.asarray(weighted - p * weighted.sum(axis=1, keepdims=True))

    return Slopes(losses, gradient, curve, p * (1 - p))


def squared_error(outputs: FloatArray, targets: FloatArray) -> Slopes:
    """(f - y)² of outputs (n, 1)."""
    residual = outputs - np.asarray(targets)[:, None]
    return Slopes(np.square(residual[:, 0]), 2 * residual, lambda direction: 2 * direction, np.full_like(residual, 2.0))


@dataclass(frozen=True, eq=False)
class Solution:
    """`weights` (r, K) for the design's axes, `intercept` (K,) for the centred rows, and `duals` (n,)."""

    weights: FloatArray = field(repr=False)
    intercept: FloatArray = field(repr=False)
    duals: FloatArray = field(repr=False)
    losses: FloatArray = field(repr=False)
    residual: float
    """The largest violation of the optimality conditions."""
    steps: int
    """Total number of Newton steps."""

    def outputs(self, rows: FloatArray) -> FloatArray:
        """(m, K) of rows (m, r) of a design."""
        return np.asarray(rows @ self.weights + self.intercept)


@dataclass(frozen=True)
class Constraints:
    """ℓ_i ≤ eps_i, with λ at most `cap`. `risk` is the objective's a: 1, or 0 for feasibility. With a finite `slope` ρ
    they are those of the resilient problem."""

    eps: FloatArray
    cap: float = UNBOUNDED
    risk: float = 1.0
    slope: float = math.inf


def solve(
    rows: FloatArray,
    targets: Any,
    loss: PerSampleLoss,
    outputs: int,
    penalty: float,
    constraints: Constraints | None = None,
    start: Solution | None = None,
    tolerance: float = TOLERANCE,
    weights: FloatArray | None = None,
) -> Solution:
    """The optimum for rows (n, r) of a design, with `penalty` in place of 1 / (C n); `start` is a warm start.

    With sample `weights` (n,), means are weighted, of the losses and of λ s: a weight of 2 is a sample that is there
    twice.
    """
    n, r = rows.shape
    relative = None if weights is None else weights / weights.mean()
    problem = _Problem(np.column_stack([rows, np.ones(n)]), targets, loss, penalty, relative)
    theta = np.zeros((r + 1, outputs))
    if start is not None:
        theta = np.vstack([start.weights, start.intercept])
    if constraints is None:
        theta, losses, residual, steps = problem.newton(theta, None, tolerance)
        return Solution(theta[:-1], theta[-1], np.zeros(n), losses, residual, steps)
    if math.isfinite(constraints.slope):
        return _solve_priced(problem, theta, constraints, tolerance)
    return _multipliers(problem, theta, constraints, start, tolerance)


def _solve_priced(problem: _Problem, theta: FloatArray, constraints: Constraints, tolerance: float) -> Solution:
    """The resilient optimum. Slopes rise to ρ, since Newton steps are only sure to be long where the penalty bends
    gently."""
    n = len(problem.rows)
    eps = np.broadcast_to(np.asarray(constraints.eps, dtype=np.float64), n)
    slope, total = min(1.0, constraints.slope), 0
    while True:
        # Around λ = 0 the augmented Lagrangian is the price of the slack.
        price = Augmented(np.zeros(n), eps, constraints.cap, slope, constraints.risk)
        theta, losses, residual, steps = problem.newton(theta, price, tolerance)
        total += steps
        if slope == constraints.slope:
            break
        slope = min(10 * slope, constraints.slope)
    if residual > max(tolerance, ACCEPTED):
        raise TrainingDiverged(
            f"the gradient is {residual:.1e} from 0 after {total} Newton steps; lower slope or C, or raise eps"
        )
    return Solution(theta[:-1], theta[-1], price.move_duals(losses), losses, residual, total)


def _multipliers(
    problem: _Problem, theta: FloatArray, constraints: Constraints, start: Solution | None, tolerance: float
) -> Solution:
    n = len(problem.rows)
    eps, cap = np.broadcast_to(np.asarray(constraints.eps, dtype=np.float64), n), constraints.cap
    duals = np.zeros(n) if start is None else np.clip(start.duals, 0, cap)
    rho, steps, before = 1.0, 0, np.inf
    inner = 1e-2
    for _ in range(MULTIPLIER_STEPS):
        augmented = Augmented(duals, eps, cap, rho, constraints.risk)
        theta, losses, residual, taken = problem.newton(theta, augmented, inner)
        steps += taken
        duals = augmented.move_duals(losses)
        gap = float(np.abs(duals - np.clip(duals + losses - eps, 0, cap)).max(initial=0.0))
        # The gradient of the Lagrangian at the new λ equals that of the augmented one at the old λ.
        if max(gap, residual) <= tolerance:
            return Solution(theta[:-1], theta[-1], duals, losses, max(gap, residual), steps)
        if gap > 0.3 * before:
            rho = min(4 * rho, 1e6)
        before, inner = gap, max(min(inner, 0.1 * gap), 0.5 * tolerance)
    if not np.isfinite(gap):
        raise TrainingDiverged(
            f"the duals are {gap} after {MULTIPLIER_STEPS} rounds; lower C, set dual_cap, or raise eps"
        )
    return Solution(theta[:-1], theta[-1], duals, losses, max(gap, residual), steps)


@dataclass(frozen=True)
class _Problem:
    """mean φ(ℓ_i) + penalty/2 ‖W‖² over θ = (W, b), (r + 1, K); φ is the identity or an augmented Lagrangian."""

    rows: FloatArray
    targets: Any
    loss: PerSampleLoss
    penalty: float
    weights: FloatArray | None = None
    """(n,) with mean 1, or None."""

    def value(self, theta: FloatArray, losses: FloatArray, outer: Augmented | None) -> float:
        total = losses if outer is None else outer.value(losses)
        if self.weights is not None:
            total = self.weights * total
        return float(total.mean() + 0.5 * self.penalty * np.square(theta[:-1]).sum())

    def newton(
        self, theta: FloatArray, outer: Augmented | None, tolerance: float
    ) -> tuple[FloatArray, FloatArray, float, int]:
        """θ with a gradient below `tolerance`, its losses, the gradient's length, and the number of steps."""
        A, n = self.rows, len(self.rows)
        squares = np.square(A)
        ridge = np.full((len(theta), 1), self.penalty)
        ridge[-1] = 0.0
        at = self.loss(A @ theta, self.targets)
        value = self.value(theta, at.losses, outer)
        for step in range(NEWTON_STEPS):
            slope = np.ones(n) if outer is None else outer.slope(at.losses)
            bend = None if outer is None else outer.bend(at.losses)
            if self.weights is not None:
                slope = self.weights * slope
                bend = None if bend is None else self.weights * bend
            gradient = A.T @ (slope[:, None] * at.gradient) / n + ridge * theta
            curvature = slope[:, None] * at.diagonal
            if bend is not None:
                curvature = curvature + bend[:, None] * np.square(at.gradient)
            scale = squares.T @ curvature / n + ridge
            scale = np.maximum(scale, 1e-12 * float(scale.max()) + 1e-300)
            size = float(np.sqrt((np.square(gradient) / scale).sum()))
            if size <= tolerance:
                return theta, at.losses, size, step

            def product(
                direction: FloatArray, at: Slopes = at, slope: FloatArray = slope, bend: FloatArray | None = bend
            ) -> FloatArray:
                moved = A @ direction
                curved = slope[:, None] * at.curve(moved)
                if bend is not None:
                    curved += at.gradient * (bend * (at.gradient * moved).sum(axis=1))[:, None]
                return np.asarray(A.T @ curved / n + ridge * direction)

            direction = follow_conjugates(product, -gradient, scale, min(0.1, np.sqrt(size)))
            descent = float((gradient * direction).sum())
            length = 1.0
            while True:
                new = theta + length * direction
                there = self.loss(A @ new, self.targets)
                met = self.value(new, there.losses, outer)
                if met <= value + 1e-4 * length * descent + ROUNDING * abs(value):
                    break
                length *= 0.5
                if length < 1e-12:
                    # Nothing more to gain in float64.
                    return theta, at.losses, size, step
            theta, at, value = new, there, met
        return theta, at.losses, size, NEWTON_STEPS
