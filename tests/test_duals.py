"""The duals of labels: in a report, and of the estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import ally
from ally import ConstrainedClassifier, ConstrainedRegressor, dual_report
from ally.constrained.convex import Constraints, Design, cross_entropy, solve
from ally.errors import InputError, ModelError, NoDuals
from ally.learning.objectives import Resilient

X, Y = load_wine(return_X_y=True)


def test_a_report_has_the_duals_of_labels_by_id_and_ranks_wrong_ones_first():
    digits, truth = load_digits(return_X_y=True)
    wrong = np.arange(0, 300, 25)
    labels = truth[:300].astype(float)
    labels[wrong] = (labels[wrong] + 3) % 10
    y = np.concatenate([labels, np.full(50, np.nan)])
    frame = pd.DataFrame(digits[:350], index=[f"d{n}" for n in range(350)])
    report = dual_report("linear", frame, y, eps=0.01, dual_cap=10.0, random_state=0)
    assert report.ids.tolist() == [f"d{n}" for n in range(300)]
    assert report.residual < 1e-5
    named = {f"d{n}" for n in wrong}
    assert len(named & set(report.ranking[: len(wrong)])) >= 9
    table = report.to_frame()
    assert table.index.tolist() == report.ranking.tolist()
    assert (np.diff(table["dual"]) <= 0).all()
    np.testing.assert_allclose(table["loss"] - table["slack"], 0.01, atol=1e-8)


@pytest.mark.parametrize("model", ["linear", "mlp", LogisticRegression(), "extra-trees"], ids=str)
def test_slacks_are_those_of_the_fit(model):
    report = dual_report(model, X, Y, eps="auto", random_state=0)
    assert report.duals.shape == report.slacks.shape == (len(X),)
    assert np.isfinite(report.slacks).all()
    assert report.residual is not None
    if model == "linear":
        # λ > 0 only where the constraint is tight.
        assert np.abs(report.slacks[report.duals > 1e-3]).max() < 1e-4


@pytest.mark.parametrize("model", ["linear", "auto", LogisticRegression(C=100.0)], ids=str)
def test_levels_that_cost_nothing_are_kept_and_said_to_rank_by_slack(model):
    report = dual_report(model, (X - X.mean(0)) / X.std(0), Y, eps=1.5, random_state=0)
    assert not report.duals.any()
    assert report.eps.tolist() == [1.5] * len(X)
    assert any(note.startswith("every dual is 0") for note in report.notes)
    assert report.ranking.tolist() == np.argsort(-report.slacks, kind="stable").tolist()


def test_levels_of_numbers_are_kept_where_all_can_be_met():
    target = X[:, 0] + 0.01 * X[:, 1]
    report = dual_report("linear", X, target, eps=0.1, task="regression", random_state=0)
    assert report.slacks.max() < 0
    assert not report.duals.any()
    assert not any("cannot be met" in note for note in report.notes)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_losses_that_are_not_finite_are_said_to_be():
    with pytest.raises(ModelError, match="GaussianNB predicts values that are not finite for 178 of 178"):
        dual_report(GaussianNB(), np.ones_like(X), Y)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"objective": "erm"}, NoDuals, "'erm' has no dual variables"),
        ({"y": [None] * len(X)}, InputError, "y holds no labels"),
        ({"model": LinearSVC()}, ModelError, "no predict_proba"),
        ({"eps": float("nan")}, InputError, "eps holds nan"),
        ({"eps": -1.0}, InputError, "eps holds -1"),
        ({"dual_cap": 0.0}, InputError, "dual_cap"),
    ],
)
def test_bad_input(arguments, error, words):
    given = {"model": "linear", "y": Y} | arguments
    with pytest.raises(error, match=words):
        dual_report(given.pop("model"), X, given.pop("y"), **given)


def optimum(eps, labels=Y, C=2.0):
    rows = Design((X - X.mean(0)) / X.std(0)).rows
    found = solve(rows, labels, cross_entropy, 3, 1 / (C * len(X)), Constraints(eps), tolerance=1e-10)
    return found.losses.mean() + np.square(found.weights).sum() / (2 * C * len(X))


def test_sensitivities_are_the_change_of_the_optimum_per_unit_of_eps():
    model = ConstrainedClassifier(model="linear", C=2.0, eps=0.05).fit(X, Y)
    levels = np.full(len(X), 0.05)
    for sample in np.argsort(-model.duals_)[:3]:
        step = 1e-4 * np.eye(len(X))[sample]
        slope = (optimum(levels + step) - optimum(levels - step)) / 2e-4
        assert model.sensitivities_[sample] == pytest.approx(slope, rel=1e-3)
    assert model.sensitivities_[model.duals_ == 0].max() == 0


def test_a_weight_of_two_is_a_sample_that_is_there_twice():
    settings = {"model": "linear", "C": 1.0, "eps": 0.05}
    order = np.concatenate([np.arange(len(X)), np.arange(len(X))])
    weighted = ConstrainedClassifier(**settings).fit(X, Y, sample_weight=np.full(len(X), 2.0))
    copied = ConstrainedClassifier(**settings).fit(X[order], Y[order])
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-5)
    both = copied.sensitivities_[: len(X)] + copied.sensitivities_[len(X) :]
    np.testing.assert_allclose(weighted.sensitivities_, both, atol=1e-4 * np.abs(both).max())
    some = ConstrainedClassifier(**settings).fit(X, Y, sample_weight=np.where(np.arange(len(X)) < 60, 3.0, 1.0))
    assert np.abs(some.predict_proba(X) - ConstrainedClassifier(**settings).fit(X, Y).predict_proba(X)).max() > 1e-3


def test_what_is_no_sensitivity_is_not_given_as_one():
    network = ConstrainedClassifier(hidden=(8,), epochs=2, random_state=0).fit(X, Y)
    assert network.duals_.shape == (len(X),)
    assert not hasattr(network, "sensitivities_")
    with pytest.raises(NoDuals, match="model='linear'"):
        _ = network.sensitivities_
    bounded = ConstrainedClassifier(model="linear", eps=0.001, dual_cap=1.0).fit(X, Y)
    assert np.isnan(bounded.sensitivities_[bounded.duals_ >= 1.0]).all()
    assert bounded.report_.capped_duals == (bounded.duals_ >= 1.0).mean() > 0
    plain = ConstrainedRegressor(model="linear", objective="erm").fit(X, X[:, 0])
    with pytest.raises(NoDuals, match="has no dual variables"):
        _ = plain.duals_


def test_constraints_that_cannot_be_met_have_no_sensitivities():
    both, labels = np.concatenate([X, X[:2]]), np.concatenate([Y, 1 - Y[:2]])
    settings = {"model": "linear", "C": 1.0, "eps": 0.1}
    impossible = ConstrainedClassifier(**settings).fit(both, labels)
    assert "cannot be met" in impossible.report_.notes[0]
    with pytest.raises(NoDuals, match="cannot be met"):
        _ = impossible.sensitivities_
    bounded = ConstrainedClassifier(**settings, dual_cap=5.0).fit(both, labels)
    assert np.isnan(bounded.sensitivities_).any()
    assert np.isfinite(bounded.sensitivities_).any()


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_resilient_estimator_has_the_cap_and_the_step_of_its_objective(model):
    settings = {"model": model, "hidden": (8,), "random_state": 0, "eps": 0.01, "objective": "resilient", "epochs": 5}
    wrong = np.where(np.arange(len(Y)) % 9 == 0, (Y + 1) % 3, Y)
    named = ConstrainedClassifier(**settings).fit(X, wrong)
    given = ConstrainedClassifier(**{**settings, "objective": Resilient(eps=0.01)}).fit(X, wrong)
    np.testing.assert_array_equal(named.duals_, given.duals_)
    assert named.duals_.max() == 1.0
    assert ConstrainedClassifier(**settings, dual_cap=0.3).fit(X, wrong).duals_.max() == pytest.approx(0.3)


def test_an_estimator_says_if_all_duals_are_at_their_bound():
    model = ConstrainedClassifier(model="linear", C=0.01, eps=0.0, dual_cap=1e-3).fit(X, Y)
    assert "every dual is at its cap, 0.001" in model.report_.notes[-1]


@pytest.mark.parametrize("length", [len(X) - 1, len(X) + 1])
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_as_many_levels_as_rows(length, model):
    with pytest.raises(InputError, match=f"eps has {length} values and X has {len(X)} rows"):
        ConstrainedClassifier(model=model, eps=np.full(length, 0.2)).fit(X, Y)


def test_levels_belong_to_the_rows_that_are_trained_on():
    levels = np.linspace(0.1, 0.9, len(X))
    model = ConstrainedClassifier(hidden=(8,), epochs=2, eps=levels, validation=0.2, random_state=0).fit(X, Y)
    report = model.report_
    mean = levels[model.training_rows_].mean()
    assert report.train_loss - report.slacks.mean == pytest.approx(mean, abs=1e-5)


def test_a_network_says_how_far_from_its_constraints_it_ended():
    report = ConstrainedClassifier(hidden=(8,), epochs=1, lr=1e-5, random_state=0).fit(X, Y).report_
    assert report.slacks.violated > 0.9
    assert report.slacks.mean > 0
    assert report.dual_residual == pytest.approx(report.slacks.largest, abs=1e-5)
    assert "% of the constraints violated" in report.notes[0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "forest"}, "pass 'mlp' or 'linear'"),
        ({"model": "linear", "validation": 0.2}, "nothing to stop early"),
        ({"model": "linear", "C": -1.0}, "C=-1.0"),
        ({"model": "linear", "secondary_loss": "brier"}, "secondary_loss"),
    ],
)
def test_settings_of_linear_models(settings, words):
    with pytest.raises(InputError, match=words):
        ConstrainedClassifier(**settings).fit(X, Y)


def test_a_linear_estimator_stands_for_the_linear_learner_in_a_query():
    y = np.where(np.arange(len(X)) % 4 == 0, Y, np.nan)
    settings = {"n": 3, "strategy": "margin", "random_state": 0}
    by_estimator = ally.query(X, y, model=ConstrainedClassifier(model="linear"), **settings)
    assert by_estimator.ids.tolist() == ally.query(X, y, model="linear", **settings).ids.tolist()
