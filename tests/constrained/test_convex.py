"""On convex problems with unique duals the trainer reaches the parameters and the duals of an interior-point solver."""

from dataclasses import dataclass, replace
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
import torch

from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import PDCL, Feasibility, HalfSquaredNorm
from ally.learning.training import Training
from ally.models import MLP
from ally.rng import streams

ACTIVE = 1e-3
pytestmark = pytest.mark.xdist_group("convex")  # they share trainings


@dataclass(frozen=True)
class Case:
    """min [mean ℓ] + weight/2 ‖w‖² s.t. ℓ'_i ≤ ε_i over linear models, and steps that suit it."""

    objective: type = PDCL
    classes: int = 1
    level: float = 0.3
    weight: float = 0.1
    secondary: str | None = None
    lr: float = 0.03
    lr_decay: float = 1.0
    dual_lr: float = 0.3
    epochs: int = 2000

    @property
    def task(self):
        return "regression" if self.classes == 1 else "classification"

    @property
    def eps(self):
        n = len(self.data[1])
        levels = self.level * (np.linspace(0.5, 1.5, n) if self.classes == 1 else np.linspace(0.7, 1.3, n))
        return np.sqrt(levels) if self.secondary == "absolute" else levels

    @property
    def data(self):
        rng = np.random.default_rng(0)
        n, d = (24, 8) if self.classes == 1 else (30, 8)
        x = rng.standard_normal((n, d))
        if self.classes == 1:
            y = x @ rng.standard_normal(d) + 0.8 * rng.standard_normal(n)
            return x, (y - y.mean()) / y.std()
        return x, (x @ rng.standard_normal((d, self.classes)) + rng.standard_normal((n, self.classes))).argmax(1)


RIDGE = Case(lr=0.02, epochs=1000)
ABSOLUTE = Case(secondary="absolute", lr=0.02, epochs=900)
BINARY = Case(classes=2, level=0.62, weight=0.05, epochs=1250)
MULTICLASS = Case(classes=3, level=0.42, weight=0.02, epochs=1200)
FEASIBLE_RIDGE = Case(Feasibility, level=0.4, weight=0.5, dual_lr=0.1, epochs=1500)
FEASIBLE_MULTICLASS = Case(Feasibility, classes=3, level=0.7, weight=0.5, lr_decay=0.999, epochs=4000)
CASES = {
    "ridge": RIDGE,
    "absolute-error": ABSOLUTE,
    "binary": BINARY,
    "multiclass": MULTICLASS,
    "feasible-ridge": FEASIBLE_RIDGE,
    "feasible-multiclass": FEASIBLE_MULTICLASS,
}


@dataclass(frozen=True)
class Optimum:
    """`duals` are in the library's units: the Lagrangian contains the mean of λ_i s_i."""

    value: float
    weights: np.ndarray
    bias: np.ndarray
    duals: np.ndarray
    slacks: np.ndarray


class Solver:
    """The problem of a case in cvxpy, compiled once for all ε."""

    def __init__(self, case):
        x, y = case.data
        self.n, k = len(x), case.classes
        self.tol = 1e-10 if k == 1 else 1e-8
        self.eps = cp.Parameter(self.n, nonneg=True)
        self.weights, self.bias = cp.Variable((k, x.shape[1])), cp.Variable(k)
        scores = x @ self.weights.T + np.ones((self.n, 1)) @ cp.reshape(self.bias, (1, k), order="C")
        if k == 1:
            residual = scores[:, 0] - y
            loss = cp.square(residual)
            self.bound = cp.abs(residual) if case.secondary == "absolute" else loss
        else:
            loss = self.bound = cp.log_sum_exp(scores, axis=1) - cp.sum(cp.multiply(scores, np.eye(k)[y]), axis=1)
        norm = case.weight / 2 * cp.sum_squares(self.weights)
        self.constraint = self.bound <= self.eps
        risk = 0 if case.objective is Feasibility else cp.sum(loss) / self.n
        shift = [cp.sum(self.bias) == 0] if k > 1 else []
        self.problem = cp.Problem(cp.Minimize(risk + norm), [self.constraint, *shift])

    def __call__(self, eps):
        self.eps.value = eps
        self.problem.solve(solver=cp.CLARABEL, tol_gap_abs=self.tol, tol_gap_rel=self.tol, tol_feas=self.tol)
        assert self.problem.status == "optimal"
        duals = self.n * self.constraint.dual_value
        return Optimum(self.problem.value, self.weights.value, centred(self.bias.value), duals, self.bound.value - eps)


@cache
def solver(case):
    return Solver(case)


def optimum(case):
    return solver(case)(case.eps)


def centred(bias):
    """Adding one number to all class scores changes nothing; a single output has no such freedom."""
    return bias - bias.mean() if len(bias) > 1 else bias


@cache
def reached(case, slacks="minibatch"):
    return reach(case, slacks=slacks)


def reach(case, *, batch_size=None, y=None, dtype=torch.float32, **settings):
    x, targets = case.data
    targets = targets if y is None else y
    training = Training(
        lr=case.lr, lr_decay=case.lr_decay, epochs=case.epochs, batch_size=batch_size or len(x), device="cpu"
    )
    objective = case.objective(
        eps=case.eps,
        secondary_loss=case.secondary,
        regularizer=HalfSquaredNorm(case.weight),
        **{"dual_lr": case.dual_lr, "dual_decay": 0.0} | settings,
    )
    classes = tuple(range(case.classes)) if case.classes > 1 else None
    learner = Network(lambda shape, outputs: MLP(shape, outputs, hidden=()).to(dtype), training)
    return learner.fit(Examples.of(x, targets, classes), objective, streams(0))


def duals_of(fit):
    return fit.duals["labelled"].numpy().astype(np.float64)


def assert_reached(fit, best, *, rtol=1e-3, atol=1e-4):
    head = fit.model.head
    np.testing.assert_allclose(head.weight.detach().numpy(), best.weights, rtol=rtol, atol=atol)
    np.testing.assert_allclose(centred(head.bias.detach().numpy()), best.bias, rtol=rtol, atol=atol)
    np.testing.assert_allclose(duals_of(fit), best.duals, rtol=rtol, atol=atol)


def gradients(case, best):
    """Gradients of all ℓ'_i in (w, b) at the optimum, (n, parameters)."""
    x, y = case.data
    inputs = np.column_stack([x, np.ones(len(x))])
    scores = x @ best.weights.T + best.bias
    if case.classes == 1:
        residual = scores[:, 0] - y
        return inputs * (np.sign(residual) if case.secondary == "absolute" else 2 * residual)[:, None]
    p = np.exp(scores - scores.max(1, keepdims=True))
    outer = p / p.sum(1, keepdims=True) - np.eye(case.classes)[y]
    return (outer[:, :, None] * inputs[:, None, :]).reshape(len(x), -1)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_cases_have_unique_duals(case):
    best = optimum(case)
    active = best.duals > ACTIVE
    assert len(np.unique(case.eps)) == len(case.eps)
    assert active.sum() >= 4
    assert (~active).sum() >= 10
    assert (best.slacks[~active] < -ACTIVE).all()
    np.testing.assert_allclose(best.slacks[active], 0, atol=1e-6)
    assert np.linalg.svd(gradients(case, best)[active], compute_uv=False).min() > 1e-2


@pytest.mark.parametrize(
    ("case", "slacks"),
    [
        pytest.param(case, slacks, id=f"{name}-{slacks}", marks=[pytest.mark.slow] if slow else [])
        for name, case in CASES.items()
        for slacks in ("minibatch", "all")
        for slow in [slacks == "all" and name not in ("multiclass", "feasible-ridge")]
    ],
)
def test_parameters_and_duals_are_the_saddle_point(case, slacks):
    best = optimum(case)
    fit = reached(case, slacks)
    assert_reached(fit, best)
    assert (duals_of(fit) > 0).tolist() == (best.duals > ACTIVE).tolist()
    assert fit.report.positive_duals == pytest.approx((best.duals > ACTIVE).mean())
    assert fit.report.slacks.largest == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("epochs", "settings"),
    [
        (1300, {"dual_decay": 1 / 16}),
        (1000, {"dual_init": 1.0}),
        (1120, {"slacks": "all", "primal_steps": 3, "dual_lr": 0.6}),
        (1000, {"dual_cap": 5.0}),
    ],
    ids=["diminishing-steps", "duals-from-one", "three-primal-steps", "cap-above-all-duals"],
)
def test_the_saddle_point_does_not_depend_on_the_path(epochs, settings):
    assert_reached(reach(replace(RIDGE, epochs=epochs), **settings), optimum(RIDGE))


def test_minibatches_reach_the_saddle_point():
    fit = reach(replace(RIDGE, lr_decay=0.994, epochs=900), batch_size=8, dual_lr=0.2)
    assert_reached(fit, optimum(RIDGE), rtol=1e-2, atol=1e-2)


def test_double_precision():
    assert_reached(reach(replace(RIDGE, epochs=1300), dtype=torch.float64), optimum(RIDGE), rtol=1e-5, atol=1e-5)


def test_the_unit_of_the_target_does_not_matter():
    fit = reach(RIDGE, y=40 * RIDGE.data[1] - 7)
    assert (fit.scale.mean, fit.scale.std) == pytest.approx((-7, 40))
    assert_reached(fit, optimum(RIDGE))


@pytest.mark.parametrize("case", [RIDGE, BINARY, FEASIBLE_RIDGE], ids=["ridge", "binary", "feasible-ridge"])
def test_duals_are_the_sensitivity_of_the_optimum(case):
    """Theorem 3.2: ∂P*/∂ε_i = −λ_i/n."""
    duals, eps, solve = duals_of(reached(case)), case.eps, solver(case)
    n, h = len(eps), 1e-3
    slopes = np.array([(solve(eps + step).value - solve(eps - step).value) / (2 * h) for step in h * np.eye(n)])
    np.testing.assert_allclose(slopes, -duals / n, rtol=1e-3, atol=1e-5)
    assert (slopes < -1e-3).sum() >= 4
    assert (duals == 0).sum() >= 10
    np.testing.assert_allclose(slopes[duals == 0], 0, atol=1e-5)
