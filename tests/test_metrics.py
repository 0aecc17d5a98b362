"""Figures of merit against scikit-learn's, and what a constant answer scores."""

import math

import numpy as np
import pytest
from sklearn import metrics as reference

from ally.errors import InputError
from ally.metrics import METRICS, Said, constant, lopsided, metric_for, recalls

N = 200
RNG = np.random.default_rng(0)


def classes(count):
    truth = np.where(RNG.random(N) < 0.7, 0, RNG.integers(count, size=N))
    scores = RNG.random((N, count)) + np.eye(count)[truth] * 0.4
    probabilities = scores / scores.sum(1, keepdims=True)
    return Said(truth, probabilities.argmax(1), probabilities)


@pytest.mark.parametrize("count", [2, 4])
def test_classification_as_scikit_learn_measures_it(count):
    said = classes(count)
    area = reference.roc_auc_score(
        said.truth,
        said.probabilities[:, 1] if count == 2 else said.probabilities,
        multi_class="ovr",
    )
    expected = {
        "accuracy": reference.accuracy_score(said.truth, said.predicted),
        "balanced_accuracy": reference.balanced_accuracy_score(said.truth, said.predicted),
        "macro_f1": reference.f1_score(said.truth, said.predicted, average="macro"),
        "auroc": area,
        "log_loss": reference.log_loss(said.truth, said.probabilities),
    }
    found = {name: METRICS[name].measure(said) for name in expected}
    assert found == pytest.approx(expected)


def test_regression_as_scikit_learn_measures_it():
    truth = RNG.normal(size=N)
    said = Said(truth, truth + RNG.normal(size=N))
    expected = {
        "r2": reference.r2_score(said.truth, said.predicted),
        "rmse": reference.root_mean_squared_error(said.truth, said.predicted),
        "mae": reference.mean_absolute_error(said.truth, said.predicted),
        "mse": reference.mean_squared_error(said.truth, said.predicted),
    }
    assert {name: METRICS[name].measure(said) for name in expected} == pytest.approx(expected)


def test_what_cannot_be_measured_is_not_a_number():
    assert math.isnan(METRICS["r2"].measure(Said(np.array([2.0]), np.array([2.0]))))
    one = Said(np.zeros(3, dtype=int), np.zeros(3, dtype=int), np.full((3, 2), 0.5))
    assert math.isnan(METRICS["auroc"].measure(one))


def test_a_constant_answer():
    known, truth = np.array([0, 0, 0, 1]), np.array([0, 1, 1, 1])
    assert constant(METRICS["accuracy"], known, truth, 2) == 0.25
    assert constant(METRICS["balanced_accuracy"], known, truth, 2) == 0.5
    assert constant(METRICS["auroc"], known, truth, 2) == 0.5
    numbers = np.array([1.0, 3.0])
    assert constant(METRICS["rmse"], numbers, np.array([0.0, 4.0])) == 2.0
    assert constant(METRICS["r2"], numbers, np.array([0.0, 4.0])) == 0.0


def test_recall_counts_each_class():
    assert recalls(np.array([0, 0, 2, 2]), np.array([0, 2, 2, 2])) == {0: (1, 2), 2: (2, 2)}


@pytest.mark.parametrize(
    ("sizes", "uneven"), [((50, 50), False), ((90, 10), True), ((40, 40, 3), True), ((9, 1), False)]
)
def test_uneven_classes(sizes, uneven):
    assert lopsided(sizes) is uneven


def test_a_metric_of_the_other_task_is_refused():
    with pytest.raises(InputError, match=r"'auroc' is not a metric of regression; use r2, rmse, mae$"):
        metric_for("auroc", "regression")
    assert metric_for("mse", "regression", bench=True).name == "mse"
