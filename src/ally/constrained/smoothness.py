r"""Values at the points of a graph, as near to the labels as smoothness at every point allows, solved exactly.

With f (n, c) the values, P (m, n) the places of m labels y_l with weights ω_l on the graph, and the smoothness
:math:`s_i(f) = \sum_j w_{ij} \lVert f_i - f_j \rVert^2 / \sum_j w_{ij}` of a point among its neighbours:

.. math:: \min_f\; \frac{1}{\sum_l \omega_l} \sum_l \omega_l \lVert (P f)_l - y_l \rVert^2
          + \frac{\tau}{n} \lVert f \rVert^2 \quad\text{s.t.}\quad s_i(f) \le \varepsilon_i,\; i = 1 \dots n

It is convex, and f = 0 is strictly feasible. The ridge τ decides where neither a label nor a constraint does: without
it the values of a part without labels, or of points whose duals are all 0, would be anything. As elsewhere the
Lagrangian contains the mean of :math:`\lambda_i (s_i - \varepsilon_i)`, so the derivative of the optimum with respect
to ε_i is −λ_i / n. A price or a cap of the slack is that of the resilient problem (`ally.constrained.convex`).

With the multipliers held, f is one sparse symmetric positive definite system for all columns, of the Laplacian of the
weights :math:`w_{ij} (\lambda_i / d_i + \lambda_j / d_j) / n`; with equal multipliers it spreads labels. The entries of
f are then means of labels and zeros, so that class memberships stay at least 0.

Multipliers move by :math:`\lambda \leftarrow \operatorname{clip}(\lambda + \rho (s - \varepsilon), 0, \lambda_{\max})`
after each minimisation of the augmented Lagrangian (the method of multipliers); with a price one minimisation is
enough. Newton steps minimise. All systems are solved by conjugate gradients, scaled by the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from ally.constrained.augmented import Augmented
from ally.constrained.conjugates import follow_conjugates
from ally.constrained.convex import ROUNDING, TOLERANCE, UNBOUNDED, Constraints
from ally.constrained.smoothness_loops import add_bend, add_diagonal, add_pull, measure
from ally.errors import InputError
from ally.types import AnyArray, FloatArray, IntArray

MULTIPLIER_STEPS, NEWTON_STEPS, CG_STEPS = 100, 100, 2000
HELD_ACCURACY = 1e-10
"""How much of the right-hand side a system with held multipliers leaves, in units of the diagonal."""


@dataclass(frozen=True, eq=False)
class SmoothProblem:
    """`links` (n, n) symmetric and at least 0; `placed` (m, n); `targets` (m, c); `weights` (m,) > 0; τ as `ridge`."""

    links: csr_array = field(repr=False)
    placed: csr_array = field(repr=False)
    targets: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    ridge: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.ridge) and self.ridge > 0):
            raise InputError.about("ridge", self.ridge, "must be a finite number > 0")
        if not (np.isfinite(self.targets).all() and np.isfinite(self.weights).all() and (self.weights > 0).all()):
            raise InputError("targets and weights of a graph must be finite numbers, and weights > 0")

    def __len__(self) -> int:
        return self.links.shape[0]

    def measure_smoothness(self, values: FloatArray) -> FloatArray:
        """s (n,) of values (n, c)."""
        found = np.empty(len(self))
        measure(*self._shares, np.ascontiguousarray(values, dtype=np.float64), found)
        return found

    def solve_held(self, duals: FloatArray, right: FloatArray | None = None) -> FloatArray:
        """f (n, c) with λ (n,) held; or for another right-hand side (n, c) of the system than the labels'."""
        wanted = self._pulled_by_labels if right is None else right
        values = np.zeros_like(wanted)
        scale = self._diagonal(duals, np.zeros(len(self)), values)
        return follow_conjugates(lambda v: self._multiply(duals, v), wanted, scale, HELD_ACCURACY, 20 * CG_STEPS)

    def predict_without(self, duals: FloatArray, some: IntArray) -> FloatArray:
        """(len(some), c): what labels number `some` would be without themselves, with λ (n,) held.

        f is linear in the labels, H y, so that it is ((H y)_l − H_ll y_l) / (1 − H_ll).
        """
        own = self.placed[some]
        share = 2 * self.weights[some] / self.weights.sum()
        answers = self.solve_held(duals, own.T.toarray() * share)
        leverage = np.minimum((own.toarray() * answers.T).sum(axis=1), 1 - 1e-9)[:, None]
        whole = own @ self.solve_held(duals)
        return np.asarray((whole - leverage * self.targets[some]) / (1 - leverage))

    @cached_property
    def _shares(self) -> tuple[AnyArray, AnyArray, FloatArray]:
        links = self.links.tocsr()
        sums = np.asarray(links.sum(axis=1)).ravel()
        shares = links.data / np.repeat(np.where(sums > 0, sums, 1.0), np.diff(links.indptr))
        return links.indptr.astype(np.int32), links.indices.astype(np.int32), shares

    @cached_property
    def _pulls(self) -> FloatArray:
        """(m,) of the labels."""
        return np.asarray(2 * self.weights / self.weights.sum())

    @cached_property
    def _pulled_by_labels(self) -> FloatArray:
        return np.ascontiguousarray(self.placed.T @ (self._pulls[:, None] * self.targets))

    def _multiply(self, duals: FloatArray, direction: FloatArray) -> FloatArray:
        """The system with λ held times a direction (n, c)."""
        product = np.ascontiguousarray(self.placed.T @ (self._pulls[:, None] * (self.placed @ direction)))
        product += 2 * self.ridge / len(self) * direction
        add_pull(*self._shares, duals / len(self), direction, product)
        return product

    def _diagonal(self, duals: FloatArray, bends: FloatArray, values: FloatArray) -> FloatArray:
        labels = self.placed.power(2).T @ self._pulls
        diagonal = np.tile(labels[:, None] + 2 * self.ridge / len(self), (1, values.shape[1]))
        add_diagonal(*self._shares, duals / len(self), bends / len(self), values, diagonal)
        return diagonal

    def value(self, values: FloatArray, outer: Augmented) -> tuple[float, FloatArray]:
        """The augmented objective, and s (n,)."""
        smoothness = self.measure_smoothness(values)
        risk = self._pulls @ np.square(self.placed @ values - self.targets).sum(axis=1) / 2
        whole = risk + self.ridge / len(self) * np.square(values).sum() + outer.value(smoothness).mean()
        return float(whole), smoothness

    def minimise(self, values: FloatArray, outer: Augmented, tolerance: float) -> tuple[FloatArray, float, int]:
        """f with a gradient below `tolerance`, the gradient's length in units of the curvature, and Newton steps."""
        value, smoothness = self.value(values, outer)
        size = math.inf
        for step in range(NEWTON_STEPS):
            slopes, bends = outer.slope(smoothness), outer.bend(smoothness)
            gradient = self._multiply(slopes, values) - self._pulled_by_labels
            scale = self._diagonal(slopes, bends, values)
            size = math.sqrt(float((np.square(gradient) / scale).sum()))
            if size <= tolerance:
                return values, size, step

            def product(
                direction: FloatArray, at: FloatArray = values, slopes: FloatArray = slopes, bends: FloatArray = bends
            ) -> FloatArray:
                found = self._multiply(slopes, direction)
                add_bend(*self._shares, bends / len(self), at, direction, found)
                return found

            direction = follow_conjugates(product, -gradient, scale, min(0.1, math.sqrt(size)), CG_STEPS)
            descent, length = float((gradient * direction).sum()), 1.0
            while True:
                new = values + length * direction
                met, there = self.value(new, outer)
                if met <= value + 1e-4 * length * descent + ROUNDING * abs(value):
                    break
                length *= 0.5
                if length < 1e-12:
                    # Nothing more to gain in float64.
                    return values, size, step
            values, value, smoothness = new, met, there
        return values, size, NEWTON_STEPS


@dataclass(frozen=True, eq=False)
class SmoothValues:
    """`values` (n, c), `duals` (n,) and the `smoothness` (n,) of the points of a graph."""

    values: FloatArray = field(repr=False)
    duals: FloatArray = field(repr=False)
    smoothness: FloatArray = field(repr=False)
    residual: float
    """The largest violation of the optimality conditions: what is left of the gradient, and the distance of λ from
    clip(λ + s − ε − λ/ρ, 0, cap), where 1/ρ is 0 without a price."""
    steps: int
    """Newton steps in all."""


def solve_smooth(problem: SmoothProblem, constraints: Constraints, tolerance: float = TOLERANCE) -> SmoothValues:
    """The optimum, of the resilient problem if the slope of the constraints is finite."""
    n = len(problem)
    eps = np.broadcast_to(np.asarray(constraints.eps, dtype=np.float64), n)
    hard = constraints.cap >= UNBOUNDED and not math.isfinite(constraints.slope)
    if not (np.isfinite(eps).all() and (eps >= 0).all()) or (hard and not eps.all()):
        raise InputError("eps of a point must be a finite number, >= 0 if slack has a price, else > 0")
    for name, value in (("slope", constraints.slope), ("cap", constraints.cap)):
        if not value > 0:
            raise InputError.about(name, value, "must be a number > 0")
    # A pull of as many labels as there are on as many points as there are.
    usual = n / len(problem.targets)
    start = problem.solve_held(np.full(n, min(usual, constraints.cap, constraints.slope)))
    solve = _solve_priced if math.isfinite(constraints.slope) else _move_multipliers
    return solve(problem, eps, constraints, start, usual, tolerance)


_Solve = Callable[[SmoothProblem, FloatArray, Constraints, FloatArray, float, float], SmoothValues]


def _solve_priced(
    problem: SmoothProblem,
    eps: FloatArray,
    constraints: Constraints,
    values: FloatArray,
    usual: float,
    tolerance: float,
) -> SmoothValues:
    """Slopes rise to ρ, since Newton steps are only sure to be long where the penalty bends gently."""
    slope, total = min(usual, constraints.slope), 0
    while True:
        # Around λ = 0 the augmented Lagrangian is the price of the slack.
        price = Augmented(np.zeros(len(eps)), eps, constraints.cap, slope, 0.0)
        last = slope == constraints.slope
        values, residual, steps = problem.minimise(values, price, tolerance if last else 1e-3)
        total += steps
        if last:
            smoothness = problem.measure_smoothness(values)
            return SmoothValues(values, price.move_duals(smoothness), smoothness, residual, total)
        slope = min(10 * slope, constraints.slope)


def _move_multipliers(
    problem: SmoothProblem,
    eps: FloatArray,
    constraints: Constraints,
    values: FloatArray,
    usual: float,
    tolerance: float,
) -> SmoothValues:
    duals: FloatArray = np.zeros(len(eps))
    rho, before, inner, total = usual, math.inf, 1e-3, 0
    for _ in range(MULTIPLIER_STEPS):
        outer = Augmented(duals, eps, constraints.cap, rho, 0.0)
        values, size, steps = problem.minimise(values, outer, inner)
        total += steps
        smoothness = problem.measure_smoothness(values)
        duals = outer.move_duals(smoothness)
        gap = float(np.abs(duals - np.clip(duals + smoothness - eps, 0, constraints.cap)).max(initial=0.0))
        if max(gap, size) <= tolerance:
            break
        if gap > 0.1 * before:
            rho = min(10 * rho, 1e6 * usual)
        before, inner = gap, max(min(inner, 0.1 * gap), 0.5 * tolerance)
    # The gradient of the Lagrangian at the new λ equals that of the augmented one at the old λ.
    return SmoothValues(values, duals, smoothness, max(gap, size), total)
