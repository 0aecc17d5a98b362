"""Smoothness over a graph as constraints, against cvxpy, a dense solver and finite differences."""

import math
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from ally.constrained.convex import UNBOUNDED, Constraints
from ally.constrained.smoothness import SmoothProblem, solve_smooth
from ally.errors import InputError
from ally.graph import NeighbourGraph

RIDGE = 0.1


def make_problem(n=40, m=9, classes=3, seed=0, ridge=RIDGE):
    """A graph of random points, with weighted labels at some of them and one between two."""
    rng = np.random.default_rng(seed)
    links = NeighbourGraph(rng.normal(size=(n, 2)).astype(np.float32), 5).links(5)
    placed = np.zeros((m, n))
    placed[np.arange(m), rng.permutation(n)[:m]] = 1.0
    placed[0] = 0.0
    placed[0, [2, 3]] = 0.25, 0.75
    targets = np.eye(classes)[np.arange(m) % classes] if classes else rng.normal(size=(m, 1))
    return SmoothProblem(links, csr_array(placed), targets, rng.uniform(0.5, 2.0, size=m), ridge)


def to_constraints(eps, cap=None, price=None):
    return Constraints(np.asarray(eps), UNBOUNDED if cap is None else cap, slope=price or math.inf)


@dataclass
class Twin:
    values: np.ndarray
    duals: np.ndarray
    optimum: float


def solve_by_cvxpy(problem, eps, cap=None, price=None):
    """Primal and dual of the stated problem, times n, since the Lagrangian has the mean of λ s."""
    n = len(problem)
    links, placed = problem.links.toarray(), problem.placed.toarray()
    f, slack = cp.Variable((n, problem.targets.shape[1])), cp.Variable(n)
    held = []
    for i in range(n):
        others = np.flatnonzero(links[i])
        apart = np.zeros((len(others), n))
        apart[:, i] = 1.0
        apart[np.arange(len(others)), others] = -1.0
        shares = links[i, others] / links[i].sum()
        smoothness = cp.sum_squares((np.sqrt(shares)[:, None] * apart) @ f)
        held.append(smoothness <= np.broadcast_to(eps, n)[i] + slack[i])
    roots = np.sqrt(problem.weights / problem.weights.sum())[:, None]
    risk = cp.sum_squares(cp.multiply(roots, placed @ f - problem.targets)) + problem.ridge / n * cp.sum_squares(f)
    if price:
        cost = price / 2 * cp.sum(cp.square(slack) if cap is None else cp.huber(slack, cap / price))
    else:
        cost = 0.0 if cap is None else cap * cp.sum(slack)
    bounds = [slack >= 0] if cap is not None else [] if price else [slack == 0]
    whole = cp.Problem(cp.Minimize(n * risk + cost), [*held, *bounds])
    whole.solve(solver=cp.CLARABEL)
    return Twin(f.value, np.array([np.ravel(one.dual_value)[0] for one in held]), whole.value / n)


CASES = {
    "hard": {"eps": 0.05},
    "capped": {"eps": 0.05, "cap": 1.0},
    "priced": {"eps": 0.05, "price": 50.0},
    "priced and capped": {"eps": 0.05, "price": 50.0, "cap": 2.0},
    "priced at 0": {"eps": 0.0, "price": 20.0},
}


@pytest.mark.parametrize("classes", [3, 0], ids=["classes", "numbers"])
@pytest.mark.parametrize("case", CASES)
def test_values_and_duals_are_those_of_cvxpy(case, classes):
    problem, setting = make_problem(classes=classes), CASES[case]
    twin = solve_by_cvxpy(problem, **setting)
    found = solve_smooth(problem, to_constraints(**setting))
    assert (twin.duals > 1e-3).any()
    np.testing.assert_allclose(found.values, twin.values, atol=1e-4)
    np.testing.assert_allclose(found.duals, twin.duals, atol=1e-4 * max(1.0, twin.duals.max()))
    assert found.residual < 1e-7


def test_duals_under_a_price_have_their_closed_form():
    problem = make_problem()
    found = solve_smooth(problem, to_constraints(0.05, cap=2.0, price=50.0))
    np.testing.assert_allclose(found.duals, np.clip(50.0 * (found.smoothness - 0.05), 0.0, 2.0), atol=1e-9)


@pytest.mark.parametrize("setting", [{}, {"price": 50.0}, {"price": 50.0, "cap": 2.0}])
def test_the_optimum_falls_by_a_share_of_the_dual_as_its_level_rises(setting):
    """dP/dε_i = −λ_i / n, by central differences of the optimum that cvxpy finds."""
    problem, n = make_problem(n=25, m=6), 25
    found = solve_smooth(problem, to_constraints(np.full(n, 0.05), **setting))
    largest, step = np.argsort(-found.duals)[:3], 1e-3
    for i in largest:
        apart = step * np.eye(n)[i]
        above, below = (solve_by_cvxpy(problem, 0.05 + sign * apart, **setting).optimum for sign in (1, -1))
        assert (above - below) / (2 * step) == pytest.approx(-found.duals[i] / n, rel=0.01)


def to_dense_system(problem, duals):
    """The matrix and the right-hand side of the values with multipliers held."""
    n, links, placed = len(problem), problem.links.toarray(), problem.placed.toarray()
    sums = links.sum(axis=1)
    between = links * (duals / sums)[:, None]
    between += between.T
    shares = problem.weights / problem.weights.sum()
    matrix = placed.T @ (shares[:, None] * placed) + problem.ridge / n * np.eye(n)
    return matrix + (np.diag(between.sum(axis=1)) - between) / n, placed.T @ (shares[:, None] * problem.targets)


@pytest.mark.parametrize("equal", [True, False])
def test_held_multipliers_are_one_linear_system(equal):
    problem = make_problem(n=60)
    duals = np.full(60, 3.0) if equal else np.random.default_rng(1).uniform(0, 5, size=60)
    np.testing.assert_allclose(
        problem.solve_held(duals), np.linalg.solve(*to_dense_system(problem, duals)), rtol=1e-6, atol=1e-8
    )


def test_the_optimum_is_the_system_with_its_own_multipliers():
    problem = make_problem()
    found = solve_smooth(problem, to_constraints(0.05))
    np.testing.assert_allclose(problem.solve_held(found.duals), found.values, atol=1e-6)


def test_labels_without_themselves_are_those_of_a_system_without_them():
    problem, duals = make_problem(), np.full(40, 2.0)
    said = problem.predict_without(duals, np.arange(9))
    whole = problem.weights.sum()
    for left in range(9):
        others = np.delete(np.arange(9), left)
        weights = problem.weights[others]
        # The pull of the others stays what it was beside the label.
        share = weights.sum() / whole
        without = SmoothProblem(
            problem.links, problem.placed[others], problem.targets[others], weights, problem.ridge / share
        )
        values = without.solve_held(duals / share)
        np.testing.assert_allclose(said[left], (problem.placed[[left]] @ values)[0], atol=1e-6)


def test_class_memberships_stay_between_0_and_1():
    found = solve_smooth(make_problem(), to_constraints(0.02))
    assert found.values.min() > -1e-6
    assert found.values.sum(axis=1).max() < 1 + 1e-6


def test_parts_and_points_without_a_label_get_0_and_no_dual():
    alone = make_problem()
    links = csr_array(block_diag([alone.links, alone.links, csr_array((1, 1))]))
    placed = csr_array(np.hstack([alone.placed.toarray(), np.zeros((9, 41))]))
    problem = SmoothProblem(links, placed, alone.targets, alone.weights, RIDGE)
    found = solve_smooth(problem, to_constraints(0.05))
    np.testing.assert_allclose(found.values[40:], 0.0, atol=1e-12)
    np.testing.assert_array_equal(found.duals[40:], 0.0)
    assert found.duals[:40].max() > 0


def test_two_labels_at_a_point_count_as_their_mean_with_both_weights():
    one = make_problem()
    placed, targets = one.placed.toarray(), one.targets.copy()
    placed[4], targets[4] = placed[3], targets[3]
    both = SmoothProblem(one.links, csr_array(placed), targets, one.weights, RIDGE)
    weights = one.weights.copy()
    weights[3] += weights[4]
    kept = [0, 1, 2, 3, 5, 6, 7, 8]
    merged = SmoothProblem(one.links, csr_array(placed[kept]), targets[kept], weights[kept], RIDGE)
    first, second = (solve_smooth(problem, to_constraints(0.05)) for problem in (both, merged))
    np.testing.assert_allclose(first.values, second.values, atol=1e-6)
    np.testing.assert_allclose(first.duals, second.duals, atol=1e-4)


@pytest.mark.parametrize(
    "constraints",
    [
        to_constraints(math.nan),
        to_constraints(-0.1, price=1.0),
        to_constraints(0.0),
        to_constraints(0.1, cap=0.0),
        to_constraints(0.1, cap=-1.0),
        to_constraints(0.1, price=-1.0),
        to_constraints(0.1, price=math.nan),
    ],
)
def test_bad_constraints_are_refused(constraints):
    with pytest.raises(InputError, match="must be a"):
        solve_smooth(make_problem(), constraints)


def test_bad_labels_and_ridges_are_refused():
    good = make_problem()
    with pytest.raises(InputError, match="ridge"):
        SmoothProblem(good.links, good.placed, good.targets, good.weights, 0.0)
    with pytest.raises(InputError, match="finite"):
        SmoothProblem(good.links, good.placed, good.targets * math.nan, good.weights, 1.0)
    with pytest.raises(InputError, match="weights"):
        SmoothProblem(good.links, good.placed, good.targets, 0 * good.weights, 1.0)
