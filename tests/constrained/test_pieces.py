"""Constraint levels, multipliers, schedules, slack summaries and the Lagrangian, one by one."""

import numpy as np
import pytest
import torch

from ally.constrained import Geometric, Multipliers, Power, Slacks, lagrangian, resolve_eps
from ally.errors import InputError

LABELS = torch.tensor([0, 2, 1, 0])
NAMES = ("cat", "dog", "owl")


def unused():
    raise AssertionError("the reference loss is needed for 'auto' only")


def classification(eps, reference_loss=unused, classes=NAMES):
    return resolve_eps(eps, LABELS, task="classification", classes=classes, reference_loss=reference_loss)


def regression(eps, reference_loss=unused):
    return resolve_eps(eps, torch.zeros(4), task="regression", classes=None, reference_loss=reference_loss)


@pytest.mark.parametrize("eps", [0.3, np.float64(0.3), np.array(0.3)])
def test_one_number_applies_to_all_samples(eps):
    assert classification(eps).tolist() == pytest.approx([0.3] * 4)


def test_zero_is_a_level():
    assert classification(0).tolist() == [0.0] * 4


@pytest.mark.parametrize("container", [list, tuple, np.array, torch.tensor])
def test_one_number_per_sample(container):
    assert regression(container([0.1, 0.2, 0.3, 0.4])).tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_levels_are_a_float32_copy():
    given = np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32)
    levels = regression(given)
    assert levels.dtype == torch.float32
    assert levels.shape == (4,)
    levels += 1
    assert given[0] == np.float32(0.1)
    shared = regression(0.5)
    shared[0] = 9
    assert shared.tolist() == [9, 0.5, 0.5, 0.5]


def test_one_number_per_class():
    assert classification({"owl": 0.3, "cat": 0.1, "dog": 0.2}).tolist() == pytest.approx([0.1, 0.3, 0.2, 0.1])


def test_class_names_may_be_numpy_scalars():
    classes = tuple(np.array([3, 5, 7]))
    assert classification({3: 0.1, 5: 0.2, 7: 0.3}, classes=classes).tolist() == pytest.approx([0.1, 0.3, 0.2, 0.1])


def test_none_is_the_papers_level():
    assert classification(None).tolist() == pytest.approx([0.2] * 4)
    assert regression(None).tolist() == pytest.approx([0.1] * 4)


@pytest.mark.parametrize("resolve", [classification, regression])
def test_auto_is_a_multiple_of_the_reference_loss(resolve):
    calls = []

    def reference_loss():
        calls.append(1)
        return 0.8

    assert resolve("auto", reference_loss).tolist() == pytest.approx([1.15 * 0.8] * 4)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("resolve", "eps", "message"),
    [
        (
            classification,
            "automatic",
            r"eps='automatic'; pass a number, one per sample, a mapping from class to number, or 'auto'",
        ),
        (regression, [0.1, 0.2], r"eps has shape \(2,\) and there are 4 labelled samples; pass one number per sample"),
        (regression, [0.1], r"eps has shape \(1,\) and there are 4 labelled samples"),
        (regression, np.zeros((4, 1)), r"eps has shape \(4, 1\) and there are 4 labelled samples"),
        (classification, -0.5, r"eps holds -0\.5; constraint levels must be finite and >= 0"),
        (classification, float("inf"), r"eps holds inf; constraint levels must be finite and >= 0"),
        (regression, [0.1, 0.2, float("nan"), -1], r"eps holds nan; constraint levels must be finite and >= 0"),
        (regression, [0.1, 0.2, -2, 0.1], r"eps holds -2\.0; constraint levels must be finite and >= 0"),
        (
            regression,
            {"cat": 0.1},
            r"eps maps classes to numbers, but the task is regression; pass a number or one per sample",
        ),
        (
            classification,
            {"cat": 0.1, "owl": 1},
            r"eps has no value for class 'dog'; give one for each of \['cat', 'dog', 'owl'\]",
        ),
        (
            classification,
            {"cat": 0.1, "dog": -3, "owl": 1},
            r"eps holds -3\.0; constraint levels must be finite and >= 0",
        ),
    ],
)
def test_bad_levels_are_named(resolve, eps, message):
    with pytest.raises(InputError, match=message):
        resolve(eps)


def test_a_diverged_reference_is_refused():
    with pytest.raises(InputError, match=r"eps holds nan"):
        classification("auto", lambda: float("nan"))


def test_multipliers_start_where_told():
    assert Multipliers(3).values.tolist() == [0, 0, 0]
    multipliers = Multipliers(3, start=1.0)
    assert multipliers.values.tolist() == [1, 1, 1]
    assert multipliers.values.dtype == torch.float32


def test_a_negative_start_is_refused():
    with pytest.raises(InputError, match=r"dual_init=-0\.1 must be a number >= 0"):
        Multipliers(3, start=-0.1)


def test_ascent_projects_at_zero():
    multipliers = Multipliers(3, start=1.0)
    multipliers.ascend(torch.arange(3), torch.tensor([2.0, -1.0, -30.0]), 0.5)
    assert multipliers.values.tolist() == [2.0, 0.5, 0.0]
    multipliers.ascend(torch.arange(3), torch.tensor([0.0, 0.0, 1.0]), 0.5)
    assert multipliers.values.tolist() == [2.0, 0.5, 0.5]


def test_ascent_moves_the_indexed_rows_only():
    multipliers = Multipliers(5, start=1.0)
    multipliers.ascend(torch.tensor([3, 0]), torch.tensor([1.0, 2.0]), 0.5)
    assert multipliers.values.tolist() == [2.0, 1.0, 1.0, 1.5, 1.0]


def test_ascent_stops_at_the_cap():
    multipliers = Multipliers(3, cap=1.5)
    for _ in range(3):
        multipliers.ascend(torch.arange(3), torch.tensor([1.0, 0.25, -1.0]), 1.0)
    assert multipliers.values.tolist() == [1.5, 0.75, 0.0]


def test_ascent_carries_no_graph():
    multipliers = Multipliers(2)
    slacks = torch.ones(2, requires_grad=True, dtype=torch.float64)
    multipliers.ascend(torch.arange(2), slacks * 2, 0.5)
    assert not multipliers.values.requires_grad
    assert multipliers.values.dtype == torch.float32
    assert multipliers.values.tolist() == [1.0, 1.0]


def test_positive_share():
    multipliers = Multipliers(4)
    assert multipliers.positive_share() == 0
    multipliers.ascend(torch.arange(4), torch.tensor([1.0, -1.0, 1e-6, 1.0]), 1.0)
    assert multipliers.positive_share() == 0.75


def test_power_schedule():
    assert [Power(0.8, 0.5)(t) for t in (1, 4, 16)] == pytest.approx([0.8, 0.4, 0.2])
    assert Power(0.05)(1) == 0.05
    assert Power(0.05)(2**16) == pytest.approx(0.025)
    assert [Power(0.3, 0.0)(t) for t in (1, 2, 1000)] == [0.3] * 3


def test_geometric_schedule():
    assert [Geometric(0.8, 0.5)(t) for t in (1, 2, 3)] == pytest.approx([0.8, 0.4, 0.2])
    assert Geometric(1e-3)(1) == 1e-3
    assert Geometric(1e-3)(11) == pytest.approx(1e-3 * 0.97**10)
    assert [Geometric(0.3, 1.0)(t) for t in (1, 2, 1000)] == [0.3] * 3


def test_slack_summary():
    summary = Slacks.of(torch.tensor([-1.0, 0.0, 0.5, 1.5]))
    assert (summary.largest, summary.violation, summary.violated) == (1.5, 0.5, 0.5)


def test_slack_summary_of_a_feasible_point():
    summary = Slacks.of(torch.tensor([-1.0, -0.25, 0.0]))
    assert (summary.largest, summary.violation, summary.violated) == (0.0, 0.0, 0.0)


def test_lagrangian_value_and_gradient():
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(5, 3, generator=rng, dtype=torch.float64), torch.randn(5, generator=rng, dtype=torch.float64)
    eps, duals = torch.rand(5, generator=rng, dtype=torch.float64), torch.tensor([0.0, 2.0, 0.5, 0.0, 7.0])
    theta = torch.randn(3, generator=rng, dtype=torch.float64, requires_grad=True)
    residual = x @ theta - y
    value = lagrangian(residual.square().mean(), residual.abs() - eps, duals)
    (gradient,) = torch.autograd.grad(value, theta)

    with torch.no_grad():
        expected = (residual.square() + duals * (residual.abs() - eps)).mean()
        by_hand = (2 * residual + duals * residual.sign()) @ x / 5
    torch.testing.assert_close(value.detach(), expected)
    torch.testing.assert_close(gradient, by_hand)


def test_lagrangian_without_weight_is_the_risk():
    theta = torch.tensor([1.0, -2.0], requires_grad=True)
    value = lagrangian(theta.square().sum(), theta * 100, torch.zeros(2))
    (gradient,) = torch.autograd.grad(value, theta)
    assert value.item() == 5
    assert gradient.tolist() == [2, -4]


def test_equal_duals_scale_the_mean():
    losses = torch.tensor([1.0, 3.0])
    assert lagrangian(torch.zeros(()), losses - 0.5, torch.full((2,), 4.0)).item() == pytest.approx(4 * 1.5)
