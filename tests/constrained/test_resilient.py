"""The resilient problem: duals by the closed form, sensitivities, candidates without labels, and both limits."""

from functools import cache
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import ally
from ally.constrained import AbsoluteError, CrossEntropy, MarginViolation, Multipliers, ProbabilityShortfall
from ally.constrained.convex import Constraints, Design, cross_entropy, solve, squared_error
from ally.errors import InputError, ModelError
from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import HalfSquaredNorm, Resilient
from ally.learning.training import Training
from ally.models import MLP
from ally.rng import streams
from ally.scoring import ConstraintDual
from ally.testing.pools import blobs

N, CLASSES, PENALTY = 40, 3, 0.05
TIGHT = {"tol_gap_abs": 1e-8, "tol_gap_rel": 1e-8, "tol_feas": 1e-8}


@cache
def data(task):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((N, 6)) + 0.5
    if task == "regression":
        y = x @ rng.standard_normal(6) + rng.standard_normal(N)
        return x, (y - y.mean()) / y.std()
    return x, (x @ rng.standard_normal((6, CLASSES)) + rng.gumbel(size=(N, CLASSES))).argmax(1)


def price(slack, slope, cap):
    """h(u) = ρu²/2 up to κ/ρ, then κ per unit: a quadratic part of the slack, and a linear one. Also what holds."""
    bent = cp.Variable(slack.shape, nonneg=True)
    return slope / 2 * cp.square(bent) + cap * (slack - bent), [bent <= slack, slack >= 0]


def cost_of(slack, slope, cap):
    return np.where(slack < cap / slope, slope * slack**2 / 2, cap * slack - cap**2 / (2 * slope))


def closed_form(violations, eps, slope, cap):
    return np.minimum(slope * np.maximum(violations - eps, 0), cap)


@cache
def by_cvxpy(task, violation, eps, slope, cap):
    """min mean ℓ + penalty/2 ‖W‖² + mean h(u) s.t. ℓ' ≤ ε + u: λ and ℓ'."""
    x, y = data(task)
    outputs = 1 if task == "regression" else CLASSES
    weights, intercept, slack = cp.Variable((6, outputs)), cp.Variable((1, outputs)), cp.Variable(N)
    scores = x @ weights + np.ones((N, 1)) @ intercept
    if task == "regression":
        losses = cp.square(scores[:, 0] - y)
        measured = cp.abs(scores[:, 0] - y) if violation == "absolute" else losses
    else:
        measured = losses = cp.log_sum_exp(scores, axis=1) - cp.sum(cp.multiply(np.eye(CLASSES)[y], scores), axis=1)
    cost, priced = price(slack, slope, cap)
    hold = measured <= eps + slack
    value = cp.sum(losses) / N + PENALTY / 2 * cp.sum_squares(weights) + cp.sum(cost) / N
    cp.Problem(cp.Minimize(value), [hold, *priced]).solve(solver=cp.CLARABEL, **TIGHT)
    return N * hold.dual_value, measured.value


def by_us(task, eps, slope, cap, penalty=PENALTY):
    x, y = data(task)
    loss, outputs = (squared_error, 1) if task == "regression" else (cross_entropy, CLASSES)
    return solve(Design(x).rows, y, loss, outputs, penalty, Constraints(eps, cap, slope=slope))


CASES = {
    "cross-entropy": ("classification", "cross-entropy", 0.4, 1.5, 1.0),
    "squared error": ("regression", "squared", 0.1, 2.0, 0.6),
    "absolute error": ("regression", "absolute", 0.2, 2.0, 1.0),
}
SOLVED = ("cross-entropy", "squared error")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_duals_of_cvxpy_are_the_closed_form(case):
    _, _, eps, slope, cap = case
    duals, violations = by_cvxpy(*case)
    assert np.abs(duals - closed_form(violations, eps, slope, cap)).max() < 1e-4
    assert duals.min() < 1e-4, "every constraint is violated: one end of the price is not tested"
    assert duals.max() > cap - 1e-4, "no dual is at the cap: the other end is not tested"
    assert ((duals > 0.01) & (duals < cap - 0.01)).any()


@pytest.mark.parametrize("name", SOLVED)
def test_the_exact_solver_finds_the_duals_of_cvxpy(name):
    task, _, eps, slope, cap = CASES[name]
    found = by_us(task, eps, slope, cap)
    duals, violations = by_cvxpy(*CASES[name])
    assert np.abs(found.duals - duals).max() < 1e-4
    assert np.abs(found.losses - violations).max() < 1e-4
    np.testing.assert_allclose(found.duals, closed_form(found.losses, eps, slope, cap), atol=1e-12)
    assert found.residual <= 1e-8


@pytest.mark.parametrize("name", SOLVED)
def test_minus_a_dual_over_n_is_the_derivative_of_the_optimum(name):
    task, _, level, slope, cap = CASES[name]

    def optimum(eps):
        found = by_us(task, eps, slope, cap)
        cost = cost_of(np.maximum(found.losses - eps, 0), slope, cap)
        return found.losses.mean() + PENALTY / 2 * np.square(found.weights).sum() + cost.mean()

    eps, step = np.full(N, level), 1e-4
    duals = by_us(task, eps, slope, cap).duals
    # One on the bend of the price, one at the cap, one whose constraint is met.
    for place in (np.abs(duals - cap / 2).argmin(), duals.argmax(), duals.argmin()):
        moved = step * np.eye(N)[place]
        derivative = (optimum(eps + moved) - optimum(eps - moved)) / (2 * step)
        assert derivative == pytest.approx(-duals[place] / N, abs=1e-6)


@pytest.mark.parametrize("name", SOLVED)
def test_plain_training_is_the_limit_of_a_small_cap(name):
    task, _, eps, _, _ = CASES[name]
    x, y = data(task)
    loss, outputs = (squared_error, 1) if task == "regression" else (cross_entropy, CLASSES)
    plain = solve(Design(x).rows, y, loss, outputs, PENALTY)
    gaps = []
    for cap in (1, 0.1, 0.01, 0.001):
        found = by_us(task, eps, cap, cap)  # reached at a slack of 1, whatever the cap
        gaps.append(np.abs(found.duals / cap - np.clip(plain.losses - eps, 0, 1)).max())
    assert all(later < 0.3 * earlier for earlier, later in pairwise(gaps)), gaps
    assert gaps[-1] < 1e-3


@pytest.mark.parametrize(("task", "eps"), [("classification", 0.7), ("regression", 0.35)])
def test_a_steep_price_without_a_cap_is_pdcl(task, eps):
    x, y = data(task)
    loss, outputs = (squared_error, 1) if task == "regression" else (cross_entropy, CLASSES)
    hard = solve(Design(x).rows, y, loss, outputs, 0.01, Constraints(eps, cap=1e6))
    assert hard.duals.max() > 0.1, "no constraint is active: nothing is tested"
    gaps = [np.abs(by_us(task, eps, slope, np.inf, 0.01).duals - hard.duals).max() for slope in (1e2, 1e4, 1e6)]
    assert gaps[2] < gaps[1] < gaps[0], gaps
    assert gaps[2] < 1e-3 * hard.duals.max()


@cache
def mixtures():
    """Probabilities (5, N, C) of fixed classifiers, whose mixtures are a convex class, and labels."""
    x, y = data("classification")
    return softmax(2 * x @ np.random.default_rng(5).standard_normal((5, 6, CLASSES)), axis=2), y


def violations_of(name, p, labels):
    """ℓ' of the rows of mixed probabilities, convex in the weights of the mixture."""
    found = []
    for row, label in enumerate(labels):
        others = [p[row, k] for k in range(CLASSES) if k != label]
        found.append(1 - p[row, label] + (cp.max(cp.hstack(others)) if name == "margin" else 0))
    return cp.hstack(found)


def mix(name, slope, cap, eps=0.0, delta=0.0, frozen=None, moved=0.0):
    """The resilient problem over mixtures, labelled on all rows but 0. With δ > 0 there are constraints for every label
    of row 0, too, that weigh δ p(y|x), p held at `frozen`; their ε is `moved` from that of the others."""
    fixed, y = mixtures()
    weights, slack, n = cp.Variable(5, nonneg=True), cp.Variable(N - 1), N - 1
    p = sum(weights[k] * fixed[k] for k in range(5))
    chosen = cp.sum(cp.multiply(p[1:], np.eye(CLASSES)[y[1:]]), axis=1)
    measured = violations_of(name, p[1:], y[1:])
    cost, priced = price(slack, slope, cap)
    hold = measured <= eps + slack
    value, constraints = -cp.sum(cp.log(chosen)) / n + cp.sum(cost) / n, [hold, *priced, cp.sum(weights) == 1]
    own = cp.Variable(CLASSES)
    held = violations_of(name, cp.vstack([p[0]] * CLASSES), range(CLASSES)) <= eps + moved + own
    if delta:
        cost, priced = price(own, slope, cap)
        value += delta * cp.sum(cp.multiply(frozen, cost))
        constraints += [held, *priced]
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL, **TIGHT)
    return n * hold.dual_value, measured.value, p[0].value, held.dual_value, problem.value


CONSTRAINTS = {"margin": MarginViolation(), "probability": ProbabilityShortfall()}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_duals_of_mixtures_are_the_closed_form(name):
    eps, slope, cap = 0.3, 1.0, 0.5
    duals, violations, *_ = mix(name, slope, cap, eps)
    assert np.abs(duals - closed_form(violations, eps, slope, cap)).max() < 1e-4
    assert duals.min() < 1e-4
    assert duals.max() > cap - 1e-4
    assert ((duals > 0.01) & (duals < cap - 0.01)).any()
    # What cvxpy was given is what the part measures.
    fixed, y = mixtures()
    assert float(CONSTRAINTS[name].measure_labels(torch.from_numpy(fixed[0]))[7, y[7]]) == pytest.approx(
        float(violations_of(name, cp.Constant(fixed[0][7:8]), y[7:8]).value[0]), abs=1e-12
    )


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_duals_of_a_candidates_constraints_add_up_to_its_score(name):
    slope, cap, delta = 0.6, 0.6, 1e-3
    *_, p, _, without = mix(name, slope, cap)
    *_, near, duals, value = mix(name, slope, cap, delta=delta, frozen=p)
    score = ConstraintDual(CONSTRAINTS[name], slope=slope, cap=cap, label="mean")

    def add_up(mixed):
        """The closed form, with the labels weighed by the frozen p."""
        violations = score.constraint.measure_labels(torch.from_numpy(mixed)[None])
        return violations[0].numpy(), float((torch.from_numpy(p) * score.price_violations(violations)).sum())

    violations, expected = add_up(p)
    assert expected > 0.05
    # To 1e-4 where the problem with the candidate is solved; as δ → 0 that is the fit without it.
    assert duals.sum() / delta == pytest.approx(add_up(near)[1], abs=1e-4)
    assert duals.sum() / delta == pytest.approx(expected, abs=1e-3)
    # Per unit of δ the optimum rises by what the violations cost; per unit of ε and δ it falls by the dual.
    assert (value - without) / delta == pytest.approx(float(p @ cost_of(violations, slope, cap)), rel=1e-2)
    step, delta = 1e-2, 1e-2
    above, below = (mix(name, slope, cap, delta=delta, frozen=p, moved=move)[-1] for move in (step, -step))
    assert (above - below) / (2 * step * delta) == pytest.approx(-expected, abs=5e-3)


def test_the_update_rests_at_the_closed_form():
    slacks = torch.tensor([-0.5, 0.1, 0.4, 3.0])
    # The second steps further than λ has to go, the third has no cap.
    for slope, cap, step in ((2.0, 0.7, 0.3), (0.1, 0.25, 5.0), (1.0, None, 0.5)):
        multipliers = Multipliers(4, cap=cap, slope=slope)
        for _ in range(400):
            multipliers.ascend(torch.arange(4), slacks, step)
        expected = (slope * slacks).clamp(min=0, max=cap)
        np.testing.assert_allclose(multipliers.values, expected, atol=1e-5)


@pytest.mark.parametrize("slacks", ["minibatch", "all"])
def test_a_network_reaches_the_exact_optimum(slacks):
    x, y = data("classification")
    task, _, eps, slope, cap = CASES["cross-entropy"]
    objective = Resilient(eps, dual_cap=cap, slope=slope, slacks=slacks, regularizer=HalfSquaredNorm(PENALTY))
    training = Training(lr=0.05, lr_decay=0.996, epochs=900, batch_size=N, device="cpu")
    network = Network(lambda shape, outputs: MLP(shape, outputs, hidden=()), training)
    fit = network.fit(Examples.of(x, y, tuple(range(CLASSES))), objective, streams(0))
    exact = by_us(task, eps, slope, cap)
    np.testing.assert_allclose(fit.duals["labelled"], exact.duals, atol=2e-3)
    assert fit.report.train_loss == pytest.approx(exact.losses.mean(), abs=2e-3)


def test_without_a_slope_the_update_keeps_its_bits():
    slacks = torch.randn(50, generator=torch.Generator().manual_seed(0))
    multipliers, plain = Multipliers(50, cap=1.0), torch.zeros(50)
    for _ in range(5):
        multipliers.ascend(torch.arange(50), slacks, 0.37)
        plain = plain.add(slacks, alpha=0.37).clamp(0.0, 1.0)
    assert torch.equal(multipliers.values, plain)


def test_parts_measure_what_the_solver_constrains():
    x, y = data("classification")
    design = Design(x)
    found = solve(design.rows, y, cross_entropy, CLASSES, PENALTY)
    p = torch.from_numpy(softmax(found.outputs(design.rows), axis=1))
    measured = CrossEntropy().measure_labels(p)[torch.arange(N), torch.from_numpy(y)]
    np.testing.assert_allclose(measured, found.losses, atol=1e-9)
    # A wide cap leaves E|y − f| = t √(2/π).
    mean = AbsoluteError().average_dual(torch.tensor([0.5, 2.0], dtype=torch.float64), 0.0, 1.0, 1e3)
    np.testing.assert_allclose(mean, np.sqrt(2 / np.pi) * np.asarray([0.5, 2.0]), rtol=1e-9)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"slope": 0}, "slope=0 must be a finite number > 0"),
        ({"slope": -1.0}, "slope=-1.0 must be a finite number > 0"),
        ({"dual_cap": 0}, "dual_cap=0 must be a finite number > 0"),
        ({"dual_cap": -1}, "dual_cap=-1 must be a finite number > 0"),
        ({"weighted": False}, "train by objective='erm' and score by scoring.ConstraintDual"),
    ],
)
def test_settings_are_checked(wrong, words):
    with pytest.raises(InputError, match=words):
        Resilient(**wrong)


@pytest.mark.parametrize("model", ["linear", "mlp", LogisticRegression()])
def test_a_level_that_is_no_number_is_refused(model):
    scene = blobs("classification")
    with pytest.raises(InputError, match="eps holds nan; constraint levels must be finite"):
        ally.query(scene.X, scene.y, n=2, strategy="margin", model=model, objective=Resilient(eps=float("nan")))


def test_a_classifier_without_probabilities_has_no_losses():
    scene = blobs("classification")
    with pytest.raises(ModelError, match="LinearSVC has no predict_proba, so its losses are not known"):
        ally.query(scene.X, scene.y, n=2, strategy="random", model=LinearSVC(), objective="resilient")


@pytest.mark.parametrize("model", ["linear", "mlp", LogisticRegression()])
def test_a_cap_that_every_slack_reaches_is_said_to_rank_nothing(model):
    scene = blobs("classification")
    asked = {"n": 2, "strategy": "ally-clusters", "model": model, "random_state": 0}
    low = ally.query(scene.X, scene.y, objective=Resilient(eps=0.0, dual_cap=1e-6, slope=1.0), **asked)
    assert any(note.startswith("every dual is at its cap, 1e-06, so they rank nothing") for note in low.notes)
    usual = ally.query(scene.X, scene.y, objective=Resilient(eps=0.05), **asked)
    assert not any("rank nothing" in note for note in usual.notes)


def test_an_objective_without_duals_says_why_there_are_none():
    scene = blobs("classification")
    model = ally.ConstrainedClassifier(hidden=(4,), epochs=2, objective="erm").fit(scene.X[:12], scene.y[:12])
    with pytest.raises(AttributeError, match=r"objective='erm' has no dual variables; use 'pdcl', .* or 'resilient'"):
        model.duals_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'dual'"):
        model.dual  # noqa: B018
    resilient = ally.ConstrainedClassifier(hidden=(4,), epochs=2, objective="resilient").fit(scene.X[:12], scene.y[:12])
    assert resilient.duals_.max() <= 1
