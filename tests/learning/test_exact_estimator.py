"""Duals of scikit-learn's own models are those of the convex problem they solve."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from ally.constrained import find_residuals
from ally.constrained.diagnostics import find_ties
from ally.data import as_source
from ally.learning.estimator import Estimator
from ally.learning.exact_estimator import find_exact_form
from ally.learning.learner import Examples
from ally.learning.objectives import PDCL, Feasibility
from ally.rng import streams

rng = np.random.default_rng(3)
N = 40
X = rng.normal(size=(N, 4)) * [1.0, 3.0, 0.3, 1.0] + [0.0, 5.0, 0.0, -2.0]
OUTPUTS = X @ rng.normal(size=(4, 3))
NAMES = np.asarray(["no", "maybe", "ah"])
THREE = (OUTPUTS + 0.8 * rng.normal(size=(N, 3))).argmax(1)
TWO = (OUTPUTS[:, 0] + 0.8 * rng.normal(size=N) > np.median(OUTPUTS[:, 0])).astype(int)
TARGET = 7.0 * OUTPUTS[:, 0] + 9.0 * rng.normal(size=N) + 100.0


def solve_with_cvxpy(loss, eps, squares, risk=1.0):
    """λ in the units of a mean, of mean ℓ + `squares` subject to ℓ ≤ ε."""
    constraint = loss <= eps
    cp.Problem(cp.Minimize(risk * cp.sum(loss) / N + squares), [constraint]).solve(solver=cp.CLARABEL)
    return N * constraint.dual_value


@pytest.mark.parametrize("C", [0.3, 30.0])
def test_two_classes(C):
    W, b = cp.Variable(4), cp.Variable()
    Z = StandardScaler().fit_transform(X)
    loss = cp.logistic(-cp.multiply(2 * TWO - 1, Z @ W + b))
    plain = LogisticRegression(C=C).fit(Z, TWO).predict_proba(Z)[np.arange(N), TWO]
    eps = 0.8 * -np.log(plain.min())
    duals = solve_with_cvxpy(loss, eps, cp.sum_squares(W) / (2 * C * N))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C))
    fitted = Estimator(model).fit(Examples.of(X, TWO, ("zero", "a")), PDCL(eps=eps), streams(0))
    assert duals.max() > 0.3
    np.testing.assert_allclose(fitted.duals["labelled"], duals, atol=1e-4 * duals.max())
    assert fitted.report.dual_residual < 1e-4


def test_three_classes_and_the_model_that_is_left():
    """The user's own estimator, trained with the weights 1 + λ, is the model that was solved for."""
    C, Z = 2.0, StandardScaler().fit_transform(X)
    W, b = cp.Variable((4, 3)), cp.Variable(3)
    scores = Z @ W + cp.reshape(b, (1, 3), order="C")
    loss = cp.log_sum_exp(scores, axis=1) - cp.sum(cp.multiply(scores, np.eye(3)[THREE]), axis=1)
    duals = solve_with_cvxpy(loss, 0.9, cp.sum_squares(W) / (2 * C * N))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C, tol=1e-10, max_iter=10000))
    fitted = Estimator(model).fit(Examples.of(X, THREE, NAMES.tolist()), PDCL(eps=0.9), streams(0))
    found = fitted.duals["labelled"].numpy()
    assert duals.max() > 0.3
    np.testing.assert_allclose(found, duals, atol=1e-4 * duals.max())
    weighted = clone(model).fit(X, NAMES[THREE], logisticregression__sample_weight=1 + found)
    np.testing.assert_allclose(weighted.predict_proba(X), fitted.estimator.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize(("objective", "risk"), [(PDCL, 1.0), (Feasibility, 0.0)])
def test_numbers(objective, risk):
    alpha, w, b = 5.0, cp.Variable(4), cp.Variable()
    standard = (TARGET - TARGET.mean()) / TARGET.std()
    eps = 0.6 * float(np.square(standard - (Ridge(alpha).fit(X, standard).predict(X))).max())
    duals = solve_with_cvxpy(cp.square(standard - X @ w - b), eps, alpha / N * cp.sum_squares(w), risk)
    fitted = Estimator(Ridge(alpha)).fit(Examples.of(X, TARGET), objective(eps=eps), streams(0))
    found = fitted.duals["labelled"].numpy()
    assert duals.max() > 1
    np.testing.assert_allclose(found, duals, atol=1e-4 * duals.max())
    weighted = Ridge(alpha).fit(X, TARGET, sample_weight=risk + found)
    np.testing.assert_allclose(fitted.predict(as_source(X)), weighted.predict(X), rtol=1e-4)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(l1_ratio=0.5, solver="saga"),
        LogisticRegression(class_weight={0: 0.0, 1: 1.0}),
        LogisticRegression(class_weight="unknown"),
        LogisticRegression(fit_intercept=False),
        LogisticRegression(solver="liblinear"),
        LogisticRegression(C=np.inf),
        Ridge(positive=True),
        Ridge(alpha=0.0),
        Ridge(fit_intercept=False),
        GaussianNB(),
    ],
)
def test_another_problem_has_no_exact_form(estimator):
    assert find_exact_form(estimator, TWO) is None


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 4.0}])
def test_weights_of_classes_count_in_the_risk_and_in_the_constraints(class_weight):
    W, b, C = cp.Variable(4), cp.Variable(), 0.5
    Z = StandardScaler().fit_transform(X)
    labels = np.where(np.arange(N) % 3 == 0, 0, TWO)
    weights = compute_sample_weight(class_weight, labels)
    model = LogisticRegression(C=C, class_weight=class_weight, tol=1e-10, max_iter=10_000)
    eps = 0.8 * -np.log(model.fit(Z, labels).predict_proba(Z)[np.arange(N), labels].min())
    loss = cp.logistic(-cp.multiply(2 * labels - 1, Z @ W + b))
    hold = loss <= eps
    cp.Problem(cp.Minimize(weights @ loss + cp.sum_squares(W) / (2 * C)), [hold]).solve(solver=cp.CLARABEL)
    fitted = Estimator(clone(model)).fit(Examples.of(Z, labels, (0, 1)), PDCL(eps=eps), streams(0))
    duals = hold.dual_value / weights
    assert duals.max() > 0.3
    np.testing.assert_allclose(fitted.duals["labelled"], duals, atol=1e-4 * duals.max())
    np.testing.assert_allclose(fitted.estimator.coef_[0], W.value, atol=1e-4)
    assert fitted.report.dual_residual < 1e-4


def test_other_models_move_their_duals_until_they_are_still():
    """Ten moves of .05 ended at a tenth of λ."""
    model = LogisticRegression(C=1.0, solver="liblinear", tol=1e-8)
    examples = Examples.of(X, TWO, ("zero", "a"))
    exact = Estimator(LogisticRegression(C=1.0)).fit(examples, PDCL(eps=0.8), streams(0)).duals["labelled"].numpy()
    fitted = Estimator(model).fit(examples, PDCL(eps=0.8), streams(0))
    found = fitted.duals["labelled"].numpy()
    losses = -np.log(fitted.estimator.predict_proba(X)[np.arange(N), 1 - TWO])
    assert found.max() > 0.5
    # liblinear penalises the intercept as well.
    np.testing.assert_allclose(found, exact, atol=0.25 * exact.max())
    assert find_residuals(found, losses - 0.8, np.inf).max() == pytest.approx(fitted.report.dual_residual, abs=1e-6)
    assert fitted.report.dual_residual <= 0.01
    assert fitted.report.notes == ()


def test_constraints_that_cannot_be_met_are_said_to_be():
    both = np.concatenate([X, X])
    labels = np.concatenate([TWO, 1 - TWO])
    fitted = Estimator(LogisticRegression()).fit(Examples.of(both, labels, ("a", "b")), PDCL(eps=0.1), streams(0))
    (note,) = fitted.report.notes
    assert "these constraints cannot be met: λ grows without bound" in note
    assert "raise eps" in note
    assert fitted.report.capped_duals > 0
    bounded = Estimator(LogisticRegression()).fit(
        Examples.of(both, labels, ("a", "b")), PDCL(eps=0.1, dual_cap=2.0), streams(0)
    )
    assert bounded.duals["labelled"].max() == 2.0
    (note,) = find_ties(bounded.duals["labelled"].numpy())
    assert "every dual is at its cap, 2, so they rank nothing" in note
