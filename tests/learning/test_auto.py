"""A learner chosen by cross-validation on the labels."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

import ally
from ally.data import as_source
from ally.errors import ModelError
from ally.learning.auto import AutoLearner, chosen_name
from ally.learning.average import Average
from ally.learning.candidates import Candidate, slate_for
from ally.learning.choice import KeptChoice, Race, weights_of
from ally.learning.estimator import Estimator
from ally.learning.learner import Examples
from ally.learning.linear import LinearLearner
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL, SmoothUnlabelled
from ally.learning.training import Training
from ally.rng import streams

QUICK = Training(epochs=30, lr=0.01, device="cpu")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 4))
SLOPE = X @ [2.0, -1.0, 0.5, 0.0] + 0.1 * RNG.standard_normal(150)
BUMPS = np.cos(2 * X[:, 0]) + np.abs(X[:, 1])
NOISY = (SLOPE + 2 * RNG.standard_normal(150) > 0).astype(int)
RING = (np.square(X[:, :2]).sum(1) > 1.4).astype(int)


def learner(**more):
    slate = (
        Candidate("linear", LinearLearner(), lambda size: 0.01),
        Candidate("mlp", Network.named("mlp", QUICK), lambda size: 0.2),
    )
    return AutoLearner(QUICK, slate=slate, **more)


def settled(y, n=60, classes=None, objective=ERM(), auto=None):
    examples = Examples.of(X[:n], y[:n], classes)
    ready = (auto or learner()).prepared(as_source(X), np.arange(150))
    return ready.settled(examples, objective, streams(0)).chosen


@pytest.mark.parametrize(
    ("y", "classes", "name"),
    [
        (SLOPE, None, "linear"),
        (BUMPS, None, "mlp"),
        (NOISY, range(2), "linear"),
        (RING, range(2), "mlp"),
    ],
)
def test_the_learner_that_suits_the_data_is_chosen(y, classes, name):
    chosen = settled(y, classes=classes)
    assert chosen.candidate.name.split(" + ")[0] == name
    assert chosen.note.startswith(name)
    assert {"linear", "mlp"} <= {one.name for one in chosen.measured}


def test_equal_labels_and_seeds_give_equal_choices():
    assert settled(BUMPS).measured == settled(BUMPS).measured


def test_the_reported_error_matches_new_samples():
    chosen = settled(SLOPE)
    fitted = chosen.candidate.learner.fit(Examples.of(X[:60], SLOPE[:60]), ERM(), streams(0))
    rmse = np.sqrt(np.mean(np.square(fitted.predict(as_source(X[60:])) - SLOPE[60:])))
    assert chosen.measured[0].error == pytest.approx(rmse, rel=0.3)


def test_ties_go_to_the_simpler():
    twice = (
        Candidate("plain", LinearLearner(), lambda size: 0.01),
        Candidate("same", LinearLearner(), lambda size: 0.01),
    )
    for objective, plain, same in ((PDCL(), "plain", "same"), (ERM(), "plain + same", "same + plain")):
        for slate, name in ((twice, plain), (twice[::-1], same)):
            assert settled(SLOPE, objective=objective, auto=AutoLearner(slate=slate)).candidate.name == name


@pytest.mark.parametrize(("y", "n", "classes"), [(SLOPE, 9, None), (np.arange(150), 12, range(150))])
def test_too_few_labels_take_the_simplest(y, n, classes):
    chosen = settled(y, n, classes)
    assert chosen.candidate.name == "linear"
    assert "too few labels" in chosen.note


def test_a_learner_that_takes_too_long_is_left_out_with_a_note():
    slow = learner(budget=0.3)
    chosen = settled(BUMPS, auto=slow)
    assert chosen.candidate.name == "linear"
    assert "mlp was left out: it would take too long" in chosen.note


def test_a_learner_that_fails_is_left_out_with_a_note():
    broken = replace(learner().slate[1], learner=Network.named("mlp", replace(QUICK, lr=1e30)))
    chosen = settled(BUMPS, auto=AutoLearner(slate=(learner().slate[0], broken)))
    assert chosen.candidate.name == "linear"
    assert "mlp was left out" in chosen.note


def test_an_objective_only_one_learner_supports_decides():
    chosen = settled(SLOPE, objective=SmoothUnlabelled())
    assert chosen.candidate.name == "mlp"
    assert chosen.measured == ()
    with pytest.raises(ModelError, match="no candidate model supports the objective"):
        settled(SLOPE, objective=SmoothUnlabelled(), auto=AutoLearner(slate=learner().slate[:1]))
    assert AutoLearner(slate=learner().slate[:1]).supports(SmoothUnlabelled(), "regression") is not None


def test_a_query_says_what_was_chosen():
    y = [*SLOPE[:40], *[None] * 110]
    q = ally.query(X, y, n=4, model=learner(), random_state=0)
    assert any(note.startswith("linear chosen by cross-validation: rmse") for note in q.notes)
    assert len(q) == 4
    assert ally.query(X, y, n=4, model=learner(), random_state=0).ids.tolist() == q.ids.tolist()


def test_chosen_again_when_labels_have_grown_by_half():
    y = np.array([*SLOPE[:12], *[np.nan] * 138])
    loop = ally.Loop(X, y, strategy="random", model=learner(), task="regression", random_state=0)
    first = loop.learner
    for count, same in ((3, True), (4, False)):
        q = loop.ask(count)
        loop.tell(q.id, {row: SLOPE[row] for row in q.ids.tolist()})
        assert (loop.learner is first) is same


def test_what_was_chosen_can_be_used_again():
    loop = ally.Loop(X, [*SLOPE[:40], *[None] * 110], strategy="random", model=learner(), random_state=0)
    chosen = loop.learner
    again = ally.Loop(X, [*BUMPS[:40], *[None] * 110], strategy="random", model=chosen, random_state=0)
    assert chosen_name(again.learner) == chosen_name(chosen) == "linear"
    assert loop.trained().to_bytes()


def test_slates_by_kind_of_samples():
    import scipy.sparse

    assert [one.name for one in slate_for(as_source(np.zeros((5, 3, 16, 16))))] == ["linear", "graph", "cnn"]
    assert [one.name for one in slate_for(as_source(scipy.sparse.csr_matrix((5, 9))))] == ["linear", "graph", "mlp"]
    assert next(one.name for one in slate_for(as_source(np.zeros((5, 3))))) == "linear"


def test_the_graph_is_tried_for_classes_only():
    auto = AutoLearner(QUICK, slate=slate_for(as_source(X))[:3])
    assert [one.name for one in auto.slate] == ["linear", "linear-common", "graph"]
    numbers = settled(SLOPE, auto=auto)
    classes = settled((SLOPE > 0).astype(float), auto=auto, classes=(0, 1))
    assert "graph" not in {one.name for one in numbers.measured}
    assert "graph" in {one.name for one in classes.measured}


def test_constraints_are_those_of_the_chosen_learner():
    fitted = settled(SLOPE).candidate.learner.fit(Examples.of(X[:60], SLOPE[:60]), PDCL(), streams(0))
    assert fitted.duals["labelled"].shape == (60,)


def test_a_choice_on_record_is_taken_until_labels_have_grown_by_half():
    before = KeptChoice("mlp", 40, "mlp chosen by cross-validation: rmse 1")
    kept = settled(SLOPE, n=59, auto=replace(learner(), before=before))
    assert kept.record == before
    assert kept.measured == ()
    assert settled(SLOPE, n=60, auto=replace(learner(), before=before)).candidate.name == "linear"
    gone = replace(learner(), before=before._replace(name="gone"))
    assert settled(SLOPE, n=50, auto=gone).record.labels == 50


def test_one_sample_far_off_does_not_decide():
    race = Race(Examples.of(X[:20], np.zeros(20)), [(np.arange(0), np.arange(20))], streams(0), None, 2)
    race.said = {"near": [np.ones((20, 1))], "far": [np.r_[np.zeros(19), 5.0][:, None]]}
    assert [one.name for one in race.measured] == ["far", "near"]
    assert [one.error for one in race.measured] == pytest.approx([np.sqrt(25 / 20), 1.0])


def test_learners_that_are_close_are_averaged():
    chosen = settled(NOISY, classes=range(2))
    assert isinstance(chosen.candidate.learner, Average)
    assert chosen.candidate.name == "linear + mlp"
    assert chosen.note.startswith("linear and mlp averaged, chosen by cross-validation: ")
    mean, *alone = chosen.measured
    assert mean.name == "linear + mlp"
    assert mean.rank < max(one.rank for one in alone)
    assert sum(chosen.weights.values()) == pytest.approx(1)


def test_a_learner_that_tells_no_classes_apart_has_no_say():
    linear, constant = learner().slate[0], Candidate("constant", Estimator(DummyClassifier()), lambda size: 0.01)
    chosen = settled(NOISY, classes=range(2), auto=AutoLearner(QUICK, slate=(constant, linear)))
    assert chosen.candidate.name == "linear"
    assert "constant was left out: it calls nearly all samples the same" in chosen.note
    other = replace(constant, name="other")
    alone = settled(NOISY, classes=range(2), auto=AutoLearner(QUICK, slate=(constant, other)))
    assert [one.name for one in alone.measured if "+" not in one.name] == ["constant", "other"]


def test_few_labels_of_other_classes_do_not_show_that_a_learner_tells_none_apart():
    linear, constant = learner().slate[0], Candidate("constant", Estimator(DummyClassifier()), lambda size: 0.01)
    rare = np.where(np.arange(150) % 15, 0, NOISY)
    chosen = settled(rare, classes=range(2), auto=AutoLearner(QUICK, slate=(constant, linear)))
    assert "calls nearly all samples the same" not in chosen.note


def test_constraints_belong_to_one_learner():
    chosen = settled(NOISY, classes=range(2), objective=PDCL())
    assert chosen.candidate.name == "linear"
    assert chosen.weights == {}


def test_weights_are_those_of_least_squares_with_many_labels():
    rng = np.random.default_rng(0)
    labels = rng.standard_normal(20_000)
    one, two = (labels + noise * rng.standard_normal(20_000) for noise in (1.0, 2.0))
    found = weights_of({"two": two[:, None], "one": one[:, None]}, labels, classes=False)
    assert [*found] == ["one", "two"]
    assert found["one"] == pytest.approx(0.8, abs=0.02)
    assert sum(found.values()) == pytest.approx(1)


def test_weights_follow_the_errors_with_few_labels():
    labels = np.array([0.0, 0.0])
    found = weights_of({"one": np.array([[1.0], [1.0]]), "two": np.array([[1.2], [1.2]])}, labels, classes=False)
    assert found["one"] == pytest.approx(1 / (1 + 1.2**-4), abs=0.03)
    assert weights_of({"one": np.ones((2, 1)), "two": np.zeros((2, 1))}, labels, classes=False) == {"two": 1.0}


def test_a_poor_learner_that_knows_what_others_do_not_has_weight():
    labels = np.arange(90) % 3
    knows = np.eye(3)[np.where(labels == 2, 0, labels)]
    only_two = np.where((labels == 2)[:, None], np.eye(3)[2], 1 / 3)
    assert weights_of({"knows": knows, "only two": only_two}, labels, classes=True)["only two"] > 0.3


def test_an_average_on_record_is_taken_again():
    chosen = settled(NOISY, classes=range(2))
    before = KeptChoice(**json.loads(json.dumps(chosen.record._asdict(), sort_keys=True)))
    kept = settled(RING, classes=range(2), auto=replace(learner(), before=before))
    assert kept.candidate == chosen.candidate
    assert kept.record == chosen.record
