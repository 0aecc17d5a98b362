"""Constraints over the pool's graph: what the learner gives beside a plain fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import ally
from ally.constrained.convex import Constraints
from ally.constrained.smoothness import solve_smooth
from ally.data import as_source
from ally.errors import InputError, ModelError, OneClassError
from ally.learning.graph import GraphLearner
from ally.learning.graph_constraints import TOLERANCE, GraphConstraints
from ally.learning.graph_settings import SpreadLabels
from ally.learning.learner import Examples, Unlabelled
from ally.learning.objectives import PDCLUnlabelled
from ally.learning.selfsupervised import Noise
from ally.rng import streams

CENTRES = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
PRICED = PDCLUnlabelled(eps=0.01, price=50.0)


def make_pool(n=90, copies=0, seed=0):
    """Samples in three groups, and the group of each; the last `copies` are copies of the first ones."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    X = (CENTRES[group] + 0.5 * rng.normal(size=(n, 2))).astype(np.float32)
    X[n - copies :], group[n - copies :] = X[:copies].copy(), group[:copies].copy()
    return X, group


def fit(X, group, labelled, objective=PRICED, unlabelled=None, numbers=False, learner=None, weights=None):
    source, rows = as_source(X), np.asarray(labelled)
    classes = None if numbers else (0, 1, 2)
    labels = (CENTRES[group[rows]] @ [1.0, 2.0]) if numbers else group[rows].astype(float)
    examples = Examples(source, rows, labels, "regression" if numbers else "classification", classes, weights)
    if unlabelled is None:
        unlabelled = np.setdiff1d(np.arange(len(X)), rows)
    prepared = (learner or GraphLearner()).prepared(source, np.arange(len(X)))
    return prepared.fit(examples, objective, streams(0), unlabelled=Unlabelled(source, unlabelled)), prepared, examples


@pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])
@pytest.mark.parametrize("objective", [PDCLUnlabelled(), PRICED, PDCLUnlabelled(eps=0.01, dual_cap=0.5)])
def test_duals_and_values_are_those_of_the_problem_on_the_graph(numbers, objective):
    X, group = make_pool()
    fitted, prepared, examples = fit(X, group, np.arange(12), objective, numbers=numbers)
    (pool,) = (one for one in prepared.graphs if one.space is fitted.space)
    targets = np.column_stack([fitted.scale.apply(examples.labels), np.ones(12)])
    values = targets if numbers else np.eye(3)[group[:12]]
    constraints = GraphConstraints(pool, fitted.settings, fitted.space.read(as_source(X), np.arange(12)),
                                   SpreadLabels(values, not numbers), objective)  # fmt: skip
    found = solve_smooth(
        constraints.build_problem(),
        Constraints(np.full(90, objective.eps), objective.dual_cap or 1e5, slope=objective.price or np.inf),
        TOLERANCE,
    )
    both = torch.cat([fitted.duals["labelled"], fitted.duals["unlabelled"]]).numpy()
    points = fitted.space.read(as_source(X), np.arange(90))
    order = (points[:, None] == pool.build().points).all(axis=2).argmax(axis=1)
    np.testing.assert_allclose(both, found.duals[order], rtol=1e-5, atol=1e-6)
    if numbers:
        np.testing.assert_allclose(fitted.masses[:, 0], found.values[:, 0], atol=1e-4)
    assert fitted.report.dual_residual < 1e-4
    assert fitted.report.positive_duals == pytest.approx((both > 0).mean())
    assert fitted.report.eps == objective.eps
    assert (fitted.report.capped_duals is None) == (objective.dual_cap is None)


def test_duals_follow_the_order_of_the_rows_and_copies_share_theirs():
    X, group = make_pool(copies=30)
    plain, *_ = fit(X, group, np.arange(12))
    shuffled = np.random.default_rng(1).permutation(np.arange(12, 90))
    mixed, *_ = fit(X, group, np.arange(12), unlabelled=shuffled)
    np.testing.assert_array_equal(mixed.unlabelled_rows, shuffled)
    np.testing.assert_array_equal(mixed.duals["unlabelled"], plain.duals["unlabelled"][shuffled - 12])
    whole = torch.cat([plain.duals["labelled"], plain.duals["unlabelled"]])
    np.testing.assert_array_equal(whole[60:], whole[:30])


def test_samples_outside_a_smaller_graph_get_the_mean_of_their_neighbours_and_a_note():
    X, group = make_pool()
    fitted, *_ = fit(X, group, np.arange(12), learner=GraphLearner(most=60))
    duals = torch.cat(list(fitted.duals.values()))
    assert torch.isfinite(duals).all()
    assert "30 samples are not in the graph" in " ".join(fitted.report.notes)


@pytest.mark.parametrize("objective", [PDCLUnlabelled(), PDCLUnlabelled(eps="auto"), PRICED])
def test_a_fit_predicts_what_is_near_and_says_what_labels_would_be_without_themselves(objective):
    X, group = make_pool()
    fitted, *_ = fit(X, group, np.arange(12), objective)
    assert (fitted.predict(as_source(X)) == group).mean() > 0.9
    probabilities, predictions = fitted.held_out
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-6)
    assert (predictions.numpy() == group[:12]).mean() > 0.5
    assert fitted.report.eps > 0


def test_numbers_are_predicted_in_their_own_units():
    X, group = make_pool()
    fitted, *_ = fit(X, group, np.arange(20), numbers=True)
    truth = CENTRES[group] @ [1.0, 2.0]
    assert np.corrcoef(fitted.predict(as_source(X)), truth)[0, 1] > 0.9


def test_a_weight_of_two_is_a_sample_that_is_there_twice():
    X, group = make_pool()
    weights = np.ones(12)
    weights[3] = 2.0
    once, *_ = fit(X, group, np.arange(12), weights=weights)
    twice, *_ = fit(X, group, [*range(12), 3], unlabelled=np.arange(12, 90))
    assert once.settings[:3] == twice.settings[:3]
    np.testing.assert_allclose(once.duals["unlabelled"], twice.duals["unlabelled"], atol=1e-3)


def test_parts_without_a_label_get_the_shares_of_the_labels():
    X, group = make_pool()
    X[60:] += 1000
    fitted, *_ = fit(X, group, np.flatnonzero(group[:60] < 2)[:12], PRICED)
    far = fitted.outputs(fitted.inputs(as_source(X), np.arange(60, 90))).numpy()
    shares = fitted.shares ** (1 / fitted.settings.temperature)
    np.testing.assert_allclose(far, np.broadcast_to(shares / shares.sum(), far.shape), atol=1e-6)
    assert "no label reaches" in " ".join(fitted.report.notes)


def test_a_graph_that_is_not_prepared_is_of_labelled_and_unlabelled_samples():
    X, group = make_pool()
    source = as_source(X)
    examples = Examples(source, np.arange(12), group[:12].astype(float), "classification", (0, 1, 2))
    whole = GraphLearner().fit(examples, PRICED, streams(0), unlabelled=Unlabelled(source, np.arange(12, 90)))
    assert len(whole.points) == 90
    alone = GraphLearner().fit(examples, PRICED, streams(0))
    assert len(alone.points) == 12
    assert set(alone.duals) == {"labelled"}
    apart = GraphLearner().fit(examples, PRICED, streams(0), unlabelled=Unlabelled(as_source(X), np.arange(12, 90)))
    assert len(apart.points) == 78
    assert torch.isfinite(apart.duals["labelled"]).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("secondary_loss", Noise()),
        ("warmup", 0.1),
        ("confidence", 0.0),
        ("shares", "labels"),
        ("shares_weight", 1.0),
        ("batch", 8),
        ("steps", 10),
        ("dual_lr", 1.0),
        ("dual_init", 1.0),
        ("dual_decay", 0.0),
    ],
)
def test_settings_of_a_training_in_steps_are_refused(name, value):
    objective = replace(PDCLUnlabelled(), **{name: value})
    assert f"{name}=" in GraphLearner().supports(objective, "classification")
    with pytest.raises(ModelError, match=f"{name}=.*has no meaning: leave it out"):
        fit(*make_pool(), np.arange(12), objective)


@pytest.mark.parametrize(("name", "value"), [("eps", float("nan")), ("eps", -1.0), ("price", 0.0), ("price", -1.0)])
def test_bad_levels_and_prices_are_refused(name, value):
    with pytest.raises(InputError, match=name):
        PDCLUnlabelled(**{name: value})


def test_one_class_and_equal_samples():
    X, group = make_pool()
    examples = Examples(as_source(X), np.arange(3), np.zeros(3), "classification", (0,))
    with pytest.raises(OneClassError):
        GraphLearner().fit(examples, PRICED, streams(0))
    fitted, *_ = fit(np.zeros_like(X), group, np.arange(12))
    np.testing.assert_array_equal(torch.cat(list(fitted.duals.values())), 0.0)


@pytest.mark.parametrize("objective", [None, PRICED])
def test_ally_unlabelled_reads_the_duals_of_the_pool(objective):
    X, group = make_pool(n=120)
    y = [int(label) if row < 15 else None for row, label in enumerate(group)]
    loop = ally.Loop(
        X, y, strategy="ally-unlabelled", model="graph", objective=objective, classes=[0, 1, 2], random_state=0
    )
    asked = loop.ask(8)
    duals = loop.fit().duals["unlabelled"]
    assert len(duals) == 105
    assert "predicted" not in asked.report
    assert asked.report["positive"] == pytest.approx(float((duals > 0).float().mean()))
    assert len(set(asked.ids.tolist())) == 8
