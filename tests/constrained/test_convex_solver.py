"""The exact solver of linear models gives the parameters and the duals of an interior-point solver."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge

from ally.constrained.convex import Constraints, Design, cross_entropy, solve, squared_error


@dataclass(frozen=True)
class Case:
    """`classes` is 1 for regression; `price` is the bound on λ."""

    classes: int
    n: int = 40
    d: int = 6
    level: float = 0.4
    C: float = 0.5
    price: float = 1e4
    risk: float = 1.0
    noise: float = 0.5
    sparse: bool = False

    def data(self):
        rng = np.random.default_rng(3)
        x = rng.standard_normal((self.n, self.d)) + 0.5
        if self.sparse:
            x = np.where(rng.random(x.shape) < 0.3, x, 0)
        if self.classes == 1:
            y = x @ rng.standard_normal(self.d) + self.noise * rng.standard_normal(self.n)
            return x, (y - y.mean()) / y.std()
        y = (
            x @ rng.standard_normal((self.d, self.classes)) + self.noise * rng.gumbel(size=(self.n, self.classes))
        ).argmax(1)
        return x, y

    @property
    def eps(self):
        return self.level * np.linspace(0.6, 1.4, self.n)


CASES = {
    "ridge": Case(1, level=0.3, C=0.05),
    "ridge-infeasible": Case(1, level=0.02, noise=2.0, price=7.0),
    "ridge-wide": Case(1, n=15, d=40, level=0.05, C=0.005),
    "binary": Case(2, level=0.5),
    "multiclass": Case(3, level=0.6),
    "multiclass-infeasible": Case(3, level=0.3, noise=2.0, price=5.0),
    "multiclass-wide": Case(4, n=25, d=60, level=0.3, C=0.01),
    "multiclass-sparse": Case(3, n=25, d=60, level=0.4, C=0.05, sparse=True),
    "feasibility": Case(3, level=0.7, risk=0.0),
    "feasibility-ridge": Case(1, level=0.5, risk=0.0),
}


def ours(case):
    x, y = case.data()
    design = Design(scipy.sparse.csr_matrix(x) if case.sparse else x)
    loss = squared_error if case.classes == 1 else cross_entropy
    constraints = Constraints(case.eps, case.price, case.risk)
    found = solve(design.rows, y, loss, case.classes, 1 / (case.C * case.n), constraints)
    return design.features(found.weights), found


def exact(case):
    """Weights and duals from cvxpy, with a priced slack in place of the bound on λ."""
    x, y = case.data()
    weights, intercept, slack = cp.Variable((case.d, case.classes)), cp.Variable((1, case.classes)), cp.Variable(case.n)
    outputs = x @ weights + np.ones((case.n, 1)) @ intercept
    if case.classes == 1:
        losses = cp.square(outputs[:, 0] - y)
    else:
        losses = cp.log_sum_exp(outputs, axis=1) - cp.sum(cp.multiply(np.eye(case.classes)[y], outputs), axis=1)
    hold = losses <= case.eps + slack
    objective = case.risk * cp.sum(losses) / case.n + cp.sum_squares(weights) / (2 * case.C * case.n)
    cp.Problem(cp.Minimize(objective + case.price * cp.sum(slack) / case.n), [hold, slack >= 0]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9
    )
    return weights.value, case.n * hold.dual_value


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_parameters_and_duals_of_cvxpy(case):
    weights, found = ours(case)
    expected, duals = exact(case)
    centred = [w - w.mean(axis=1, keepdims=True) if case.classes > 1 else w for w in (weights, expected)]
    assert np.abs(centred[0] - centred[1]).max() < 1e-4 * max(1, np.abs(expected).max())
    assert np.abs(found.duals - duals).max() < 1e-3 * max(1.0, duals.max())
    assert (found.duals > 1e-3).any(), "no constraint is active: nothing is tested"
    assert found.residual <= 1e-8


def test_infeasible_cases_are_infeasible_and_bounded():
    for name in ("ridge-infeasible", "multiclass-infeasible"):
        _, found = ours(CASES[name])
        assert (found.losses > CASES[name].eps + 1e-3).any()
        assert found.duals.max() == CASES[name].price


def test_a_dual_is_the_derivative_of_the_optimum():
    case = CASES["multiclass"]
    x, y = case.data()
    rows = Design(x).rows

    def optimum(eps):
        found = solve(rows, y, cross_entropy, 3, 1 / (case.C * case.n), Constraints(eps, case.price))
        return found, found.losses.mean() + np.square(found.weights).sum() / (2 * case.C * case.n)

    found, _ = optimum(case.eps)
    strongest = int(found.duals.argmax())
    step = 1e-4 * np.eye(case.n)[strongest]
    slope = (optimum(case.eps + step)[1] - optimum(case.eps - step)[1]) / 2e-4
    assert slope == pytest.approx(-found.duals[strongest] / case.n, rel=1e-3)


@pytest.mark.parametrize(("n", "d", "classes"), [(60, 5, 3), (30, 90, 4)])
def test_without_constraints_it_is_logistic_regression(n, d, classes):
    x, y = Case(classes, n=n, d=d).data()
    design = Design(x)
    found = solve(design.rows, y, cross_entropy, classes, 1 / (0.3 * n))
    theirs = LogisticRegression(C=0.3, tol=1e-10, max_iter=10_000).fit(x, y)
    weights = design.features(found.weights)
    assert np.abs(weights - weights.mean(axis=1, keepdims=True) - theirs.coef_.T).max() < 1e-5
    outputs = found.outputs(design.rows)
    assert np.abs(outputs - outputs.mean(axis=1, keepdims=True) - theirs.decision_function(x)).max() < 1e-5


def test_two_classes_have_half_the_c_of_scikit_learn():
    x, y = Case(2).data()
    design = Design(x)
    found = solve(design.rows, y, cross_entropy, 2, 1 / (0.15 * len(y)))
    theirs = LogisticRegression(C=0.3, tol=1e-10, max_iter=10_000).fit(x, y)
    outputs = found.outputs(design.rows)
    assert outputs[:, 1] - outputs[:, 0] == pytest.approx(theirs.decision_function(x), abs=1e-5)


def test_without_constraints_it_is_ridge_regression():
    x, y = Case(1).data()
    design = Design(x)
    found = solve(design.rows, y, squared_error, 1, 1 / (0.3 * len(y)))
    theirs = Ridge(alpha=1 / 0.6).fit(x, y)
    assert design.features(found.weights)[:, 0] == pytest.approx(theirs.coef_, abs=1e-8)
    assert found.outputs(design.rows)[:, 0] == pytest.approx(theirs.predict(x), abs=1e-8)


def test_loose_constraints_change_nothing():
    x, y = Case(3).data()
    rows = Design(x).rows
    plain = solve(rows, y, cross_entropy, 3, 0.1)
    loose = solve(rows, y, cross_entropy, 3, 0.1, Constraints(np.full(len(y), 50.0)))
    assert not loose.duals.any()
    assert np.abs(plain.outputs(rows) - loose.outputs(rows)).max() < 1e-6


def test_constant_features_and_a_single_row():
    design = Design(np.ones((4, 3)))
    found = solve(design.rows, np.array([0, 1, 1, 1]), cross_entropy, 2, 0.1)
    assert not design.features(found.weights).any()
    assert np.exp(found.intercept[1] - found.intercept[0]) == pytest.approx(3)
    single = Design(np.ones((1, 3)))
    assert solve(single.rows, np.array([2.5]), squared_error, 1, 0.1).intercept == pytest.approx([2.5])
