"""Label spreading over a pool's graph as a learner."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, make_circles

import ally
from ally.data import as_source
from ally.errors import DataError, InputError, NonFiniteInput, OneClassError
from ally.learning.auto import AutoLearner
from ally.learning.distil import distil
from ally.learning.graph import GraphLearner
from ally.learning.graph_settings import NOTHING, GraphSettings, SpreadLabels, choose_settings, predict_labels
from ally.learning.graph_space import AXES, find_space
from ally.learning.learner import Examples
from ally.learning.linear import LinearLearner
from ally.learning.objectives import ERM, PDCL
from ally.learning.pool_graph import ALPHAS, NEIGHBOURS, PoolGraph
from ally.learning.trained import Trained
from ally.rng import Streams


def fit(X, y, rows, classes=None, learner=GraphLearner(), source=None, **more):
    source = as_source(X) if source is None else source
    ready = learner.prepared(source, np.arange(len(source)))
    numbers = np.asarray(y, dtype=float)
    task = "regression" if classes is None else "classification"
    examples = Examples(source, np.asarray(rows), numbers[np.asarray(rows)], task, classes, **more)
    return ready.fit(examples, ERM(), Streams(0))


def accuracy(fitted, X, y):
    return float(np.mean(fitted.predict(as_source(X)) == y))


def rings(seed=0, n=600, noise=0.06):
    X, y = make_circles(n, noise=noise, factor=0.5, random_state=seed)
    return X.astype(np.float32), y


def moons_with_a_bridge(seed=0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, np.pi, 300)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)])
    bridge = np.column_stack([np.linspace(0.9, 0.1, 8), np.linspace(0.05, 0.45, 8)])
    X = np.concatenate([upper, lower, bridge]) + 0.05 * rng.normal(size=(608, 2))
    y = np.r_[np.zeros(300), np.ones(300), (np.arange(8) >= 4).astype(float)]
    return X.astype(np.float32), y.astype(int)


def pick(y, count, seed=0):
    """`count` rows of each class."""
    rng = np.random.default_rng(seed)
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(y == label))[:count] for label in np.unique(y)]))


@pytest.mark.parametrize("make", [rings, moons_with_a_bridge])
def test_a_few_labels_follow_the_shape_of_the_pool(make):
    X, y = make()
    rows = pick(y, 5)
    assert accuracy(fit(X, y, rows, (0, 1)), X, y) > 0.95
    assert accuracy(fit(X, y, rows, (0, 1), learner=LinearLearner()), X, y) < 0.9


def test_digits_need_few_labels():
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(1200)[:100]
    pool = as_source(X[:1200])
    graph = fit(X, y, rows, tuple(range(10)), source=pool)
    linear = fit(X, y, rows, tuple(range(10)), LinearLearner(), source=pool)
    assert accuracy(graph, X[1200:], y[1200:]) > accuracy(linear, X[1200:], y[1200:]) + 0.02


def test_what_a_label_would_be_without_itself_is_what_a_fit_without_it_says():
    X, y = rings(n=200, noise=0.2)
    rows = pick(y, 8)
    source = as_source(X)
    (graph,) = GraphLearner().prepared(source, np.arange(len(X))).graphs[:1]
    points, memberships = graph.space.read(source, rows), np.eye(2)[y[rows]]
    for k in NEIGHBOURS:
        reached, totals = graph.relate_labels(points, k)
        placed = graph.build().interpolate(points, k)
        for place, alpha in enumerate(ALPHAS):
            masses = graph.spread_labels(placed, memberships, k, alpha)
            np.testing.assert_allclose(totals[place] @ memberships, masses.sum(axis=0), rtol=1e-6)
            for one in range(len(rows)):
                others = np.delete(np.arange(len(rows)), one)
                alone = placed[[one]] @ graph.spread_labels(placed[others], memberships[others], k, alpha)
                np.testing.assert_allclose(reached[place, one] @ memberships, alone[0], rtol=1e-6)


def test_labels_that_come_later_change_nothing_of_what_was_known():
    X, y = rings(n=300)
    source, rows = as_source(X), pick(y, 20)
    at_once, in_turn = (
        PoolGraph(source, np.arange(300), find_space(source, np.arange(300), "columns"), 999) for _ in "ab"
    )
    points = at_once.space.read(source, rows)
    for count in (5, 12, 40):
        found = in_turn.relate_labels(points[:count], 10)
    expected = at_once.relate_labels(points, 10)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-15)


def test_the_usual_settings_stay_unless_others_are_clearly_better():
    X, y = rings(n=400, noise=0.01)
    source = as_source(X)
    graph = PoolGraph(source, np.arange(400), find_space(source, np.arange(400), "columns"), 999)
    few = graph.space.read(source, pick(y, 2))
    labels = SpreadLabels(np.eye(2)[[0, 0, 1, 1]], True)
    assert choose_settings(graph, few, labels).settings == GraphSettings()
    noisy = np.random.default_rng(0).integers(2, size=100)
    points = graph.space.read(source, np.arange(100))
    chosen = choose_settings(graph, points, SpreadLabels(np.eye(2)[noisy], True)).settings
    assert chosen.temperature > 1, "labels that neighbours do not share say little"


def test_parts_that_no_label_reaches_get_the_shares_of_the_labels_and_a_note():
    X, y = rings()
    far = np.concatenate([X, X[:200] + 1000]).astype(np.float32)
    fitted = fit(far, np.r_[y, y[:200]], [*pick(y, 6), *pick(y, 3, seed=1)], (0, 1))
    assert any("no label reaches 200 of 800 samples" in note for note in fitted.report.notes)
    seen = fitted.view(as_source(far), np.arange(600, 800))
    torch.testing.assert_close(seen.probabilities, torch.full((200, 2), 0.5), atol=0.2, rtol=0)
    (note,) = fit(X, y, pick(y, 6), (0, 1)).report.notes
    assert "600 samples of the pool, labelled or not" in note


def test_copies_are_one_point():
    X, y = rings(n=300)
    rows = pick(y, 8)
    once, often = fit(X, y, rows, (0, 1)), fit(np.tile(X, (5, 1)), np.tile(y, 5), rows, (0, 1))
    assert len(often.points) == len(once.points) == 300
    np.testing.assert_allclose(
        often.outputs(often.inputs(as_source(X), rows)), once.outputs(once.inputs(as_source(X), rows)), rtol=1e-4
    )


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_all_samples_alike(task):
    X, y = np.ones((30, 3), np.float32), np.arange(30) % 2
    fitted = fit(X, y, np.arange(10), (0, 1) if task == "classification" else None)
    seen = fitted.view(as_source(X), np.arange(30))
    assert torch.isfinite(seen.predictions.double()).all()
    if task == "classification":
        torch.testing.assert_close(seen.probabilities[0], torch.tensor([0.5, 0.5]), atol=1e-3, rtol=0)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_fewer_samples_than_neighbours(n):
    X, y = rings(n=n)
    q = (
        ally.query(
            X, [y[0], 1 - y[0], *[None] * (n - 2)], n=max(1, n - 2), model="graph", classes=[0, 1], random_state=0
        )
        if n > 2
        else None
    )
    assert q is None or len(q.ids) == n - 2
    assert torch.isfinite(fit(X, y, [0, 1], (0, 1)).view(as_source(X), np.arange(n)).probabilities).all()


def test_bad_labels_and_samples_are_named():
    X, y = rings(n=60)
    with pytest.raises(OneClassError, match="one class only"):
        fit(X, np.zeros(60), [0, 1, 2], (0,))
    X[7] = np.nan
    with pytest.raises(NonFiniteInput, match="nan at row 7"):
        fit(X, y, [0, 1, 2], (0, 1))
    with pytest.raises(InputError, match="most"):
        GraphLearner(most=0)


def test_sparse_texts_are_compared_along_their_main_directions():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    words = rng.poisson(0.1, size=(400, 300)) + (rng.random((400, 300)) < 0.3 * (np.arange(300) % 2 == y[:, None]))
    fitted = fit(None, y, pick(y, 6), (0, 1), source=as_source(csr_matrix(words.astype(np.float32))))
    assert fitted.points.shape == (400, AXES)
    assert np.mean(fitted.predict(as_source(csr_matrix(words.astype(np.float32)))) == y) > 0.95


def test_a_sample_counts_as_often_as_it_weighs():
    X = np.linspace(0, 1, 50, dtype=np.float32)[:, None]
    y = (np.arange(50) >= 25).astype(int)
    weights = np.where(np.asarray([5, 45]) == 5, 100.0, 1.0)
    plain = fit(X, y, [5, 45], (0, 1))
    weighted = fit(X, y, [5, 45], (0, 1), weights=weights)
    middle = np.asarray([25])
    assert (
        weighted.view(as_source(X), middle).probabilities[0, 0] > plain.view(as_source(X), middle).probabilities[0, 0]
    )


def test_a_pool_larger_than_the_graph_is_predicted_from_a_sample_of_it():
    X, y = rings(n=3000)
    fitted = fit(X, y, pick(y, 10), (0, 1), learner=GraphLearner(most=500))
    assert len(fitted.points) == 500
    assert accuracy(fitted, X, y) > 0.98


def test_more_labels_than_the_settings_are_chosen_by_are_held_out_in_folds():
    X, y = rings(n=1200, noise=0.15)
    wrong = np.random.default_rng(0).random(1200) < 0.1
    noisy = np.where(wrong, 1 - y, y)
    fitted = fit(X, noisy, np.arange(900), (0, 1))
    probabilities = fitted.held_out[0].numpy()
    own = probabilities[np.arange(900), noisy[:900]]
    assert own[wrong[:900]].mean() < 0.3 < 0.7 < own[~wrong[:900]].mean(), "a label does not vouch for itself"
    source, rows = as_source(X), np.arange(900)
    seen = fitted.outputs(fitted.inputs(source, rows)).numpy()[rows, noisy[:900]]
    assert own[wrong[:900]].mean() < 0.7 * seen[wrong[:900]].mean(), "the fit itself saw these labels"
    alone = np.random.default_rng(1).normal(size=(900, 2)).astype(np.float32) * 100
    coins = np.random.default_rng(2).integers(2, size=900)
    guessed = fit(alone, coins, rows, (0, 1)).held_out[0].numpy().argmax(axis=1)
    assert 0.4 < np.mean(guessed == coins) < 0.6, "labels that say nothing of each other are guessed by chance"


def test_numbers_follow_the_pool():
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, 3 * np.pi, 800)
    X = np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]).astype(np.float32)
    rows = np.sort(rng.permutation(800)[:60])
    graph, linear = fit(X, turn, rows), fit(X, turn, rows, learner=LinearLearner())
    errors = [np.sqrt(np.mean((each.predict(as_source(X)) - turn) ** 2)) for each in (graph, linear)]
    assert errors[0] < 0.2 * errors[1]


def test_the_learner_travels_without_its_pool():
    X, y = rings(n=400)
    source = as_source(X)
    ready = GraphLearner().prepared(source, np.arange(400))
    sent = pickle.loads(pickle.dumps(ready))
    assert sent.graphs[0]._pending is None
    examples = Examples(source, pick(y, 5), y[pick(y, 5)].astype(float), "classification", (0, 1))
    one, other = (each.fit(examples, ERM(), Streams(0)).view(source, np.arange(400)) for each in (ready, sent))
    assert torch.equal(one.probabilities, other.probabilities)


def test_a_model_file_holds_points_and_masses_and_no_more():
    X, y = load_digits(return_X_y=True)
    fitted = fit(X, y, np.arange(60), tuple(range(10)))
    data = Trained(fitted).to_bytes()
    assert len(data) < 4 * len(fitted.points) * (fitted.points.shape[1] + 10) + 40_000
    again = Trained.from_bytes(data).fit
    assert torch.equal(
        again.view(as_source(X), np.arange(200)).probabilities, fitted.view(as_source(X), np.arange(200)).probabilities
    )


def test_new_samples_far_from_everything_get_an_answer():
    X, y = rings()
    fitted = fit(X, y, pick(y, 5), (0, 1))
    seen = fitted.view(as_source(np.asarray([[1e30, -1e30], [0, 0]], np.float64)), np.arange(2))
    assert torch.isfinite(seen.probabilities).all()


def test_other_objectives_are_refused():
    assert "label spreading" in GraphLearner().supports(PDCL(), "classification")


def test_predictions_where_nothing_arrives():
    shares = np.asarray([0.2, 0.8])
    np.testing.assert_allclose(predict_labels(np.zeros((1, 2)), 1.0, shares)[0], shares)
    assert predict_labels(np.zeros((1, 2)), 1.0, None)[0, 0] == 0, "the mean"
    assert NOTHING > 0


def test_auto_averages_the_graph_where_neighbours_share_labels_and_hardly_elsewhere():
    X, y = rings(n=400)
    noise = np.random.default_rng(1).normal(size=(400, 20)).astype(np.float32)
    scattered = np.where(noise[:, 0] > 0, 1, 0)
    chosen = []
    for samples, labels in ((X, y), (noise * np.asarray([1, *[30] * 19]), scattered)):
        source = as_source(samples.astype(np.float32))
        auto = AutoLearner(slate=None).prepared(source, np.arange(400))
        auto = replace(auto, slate=tuple(one for one in auto.slate if one.name in ("linear", "graph")))
        examples = Examples(source, np.arange(60), labels[:60].astype(float), "classification", (0, 1))
        chosen.append(auto.settled(examples, ERM(), Streams(0)).chosen)
    assert "graph" in chosen[0].candidate.name
    assert chosen[0].weights.get("graph", 1.0) > 0.9, chosen[0].note
    assert chosen[1].weights.get("graph", 0.0) < 0.3, chosen[1].note


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"masses": -1.0}, "masses are negative"),
        ({"points": 1e20}, "too far out"),
        ({"points": float("nan")}, "not finite"),
        ({"shares": None}, "missing"),
    ],
)
def test_a_file_that_lies_is_refused(changes, said):
    X, y = rings(n=60)
    trained = Trained(fit(X, y, pick(y, 5), (0, 1)))
    facts, tensors = trained.fit.packed()
    for name, value in changes.items():
        tensors[name] = None if value is None else torch.full_like(tensors[name], value)
    changed = replace(
        trained, fit=_Packed(trained.fit, facts, {key: one for key, one in tensors.items() if one is not None})
    )
    with pytest.raises(DataError, match=said):
        Trained.from_bytes(changed.to_bytes())


@pytest.mark.parametrize(
    ("name", "value"), [("k", 0), ("k", -3), ("width", 0.0), ("width", -1.0), ("temperature", 1e-9)]
)
def test_a_header_that_lies_is_refused(name, value):
    X, y = rings(n=60)
    trained = Trained(fit(X, y, pick(y, 5), (0, 1)))
    facts, tensors = trained.fit.packed()
    with pytest.raises(DataError, match="out of range"):
        Trained.from_bytes(replace(trained, fit=_Packed(trained.fit, {**facts, name: value}, tensors)).to_bytes())


class _Packed:
    """A fit that is written as something else."""

    def __init__(self, fitted, facts, tensors):
        self.task, self.classes = fitted.task, fitted.classes
        self._packed = facts, tensors

    def packed(self):
        return self._packed


@pytest.mark.parametrize("name", ["linear", "trees"])
def test_a_plain_model_says_nearly_the_same(name):
    X, y = load_digits(return_X_y=True)
    trained = Trained(fit(X, y, np.arange(200), tuple(range(10))), {"labels": 200, "measured": {"value": 0.9}})
    plain = distil(trained, as_source(X), name)
    assert plain.about["labels"] == 200
    assert "measured" not in plain.about, "a figure is of one model"
    assert plain.about["agreement"] > 0.93
    assert np.mean(plain.fit.predict(as_source(X)) == trained.fit.predict(as_source(X))) > 0.93
    assert len(plain.to_bytes()) < len(trained.to_bytes()) or name == "trees"


def test_a_plain_model_needs_something_to_learn():
    X, y = rings(n=100)
    trained = Trained(fit(X, y, pick(y, 5), (0, 1)))
    with pytest.raises(InputError, match="at least 10"):
        distil(trained, as_source(X[:9]), "linear")
    with pytest.raises(InputError, match="the same label"):
        distil(trained, as_source(np.repeat(X[:1], 20, axis=0)), "linear")
    with pytest.raises(InputError, match="pass one of 'linear', 'trees'"):
        distil(trained, as_source(X), "forest")
