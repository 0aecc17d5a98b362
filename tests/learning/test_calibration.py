"""Temperatures against a naive search and by construction; what is held out, and what becomes of it."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

import ally
from ally.learning.calibration import COLDEST, HOTTEST, folds, temperature, tempered
from ally.learning.snapshot import HeldOut
from ally.rng import Streams
from ally.scoring import Entropy, Margin
from ally.testing.pools import blobs


def drawn(m, scale, seed=0, classes=5):
    """Labels drawn from softmax(z), and probabilities that are said to be softmax(scale · z)."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(m, classes))
    labels = (softmax(z, 1).cumsum(1) < rng.random((m, 1))).sum(1).clip(max=classes - 1)
    return HeldOut(torch.from_numpy(softmax(scale * z, 1).astype(np.float32)), torch.from_numpy(labels))


def naive_temperature(held_out):
    """The minimum of the smoothed negative log-likelihood, by a search that knows no slopes."""
    z, labels = np.log(held_out.probabilities.double().numpy()), held_out.labels.numpy()
    smoothing = 1 / (len(z) + 2)
    targets = (1 - smoothing) * np.eye(z.shape[1])[labels] + smoothing / z.shape[1]

    def loss(log_temperature):
        return -(targets * log_softmax(z / np.exp(log_temperature), 1)).sum(1).mean()

    return float(
        np.exp(minimize_scalar(loss, bounds=(np.log(0.1), np.log(100)), method="bounded", options={"xatol": 1e-9}).x)
    )


@pytest.mark.parametrize("scale", [0.25, 1.0, 5.0])
def test_scaled_logits_give_their_scale(scale):
    assert temperature(drawn(20_000, scale)) == pytest.approx(scale, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [2, 30, 500])
def test_temperature_equals_a_naive_search(m, seed):
    held_out = drawn(m, 3.0, seed)
    assert temperature(held_out) == pytest.approx(naive_temperature(held_out), rel=1e-3)


def test_few_correct_predictions_do_not_give_certainty():
    right = HeldOut(torch.tensor([[0.9, 0.1], [0.1, 0.9]] * 3), torch.tensor([0, 1] * 3))
    assert 0.5 < temperature(right) < 1.5
    wrong = HeldOut(right.probabilities, 1 - right.labels)
    assert temperature(wrong) == pytest.approx(HOTTEST, rel=1e-6)
    sure = HeldOut(torch.tensor([[0.6, 0.4]] * 100_000), torch.zeros(100_000, dtype=torch.int64))
    assert temperature(sure) == pytest.approx(COLDEST, rel=1e-6)


def test_probabilities_that_rounded_to_0_or_1_stay_finite():
    sure = HeldOut(torch.eye(4), torch.arange(4))
    assert np.isfinite(temperature(sure))
    assert torch.isfinite(tempered(torch.eye(4), 3.0)).all()


@pytest.mark.parametrize(("score", "naive"), [(Margin, "margin"), (Entropy, "entropy")])
def test_scores_of_calibrated_probabilities(make_snapshot, score, naive):
    snapshot = make_snapshot(n=1500)
    held_out = drawn(400, 4.0, classes=4)
    object.__setattr__(snapshot, "held_out", held_out)
    scored = score(calibrated=True)(snapshot, Streams(0))
    p = softmax(np.log(snapshot.candidates.probabilities.double().numpy()) / naive_temperature(held_out), 1)
    top = np.sort(p, 1)
    expected = {"margin": 1 - (top[:, -1] - top[:, -2]), "entropy": -(p * np.log(p)).sum(1)}[naive]
    np.testing.assert_allclose(scored.scores, expected, rtol=1e-3)
    assert np.argsort(scored.scores.numpy()).tolist() == np.argsort(expected).tolist()
    assert scored.report["temperature"] == temperature(held_out)
    assert np.argsort(score()(snapshot, Streams(0)).scores.numpy()).tolist() != np.argsort(expected).tolist()


def test_without_held_out_labels_probabilities_stay_as_they_are(make_snapshot):
    snapshot = make_snapshot()
    scored = Margin(calibrated=True)(snapshot, Streams(0))
    assert torch.equal(scored.scores, Margin()(snapshot, Streams(0)).scores)
    assert scored.report == {"temperature": None}
    assert Margin()(snapshot, Streams(0)).report == {}


def test_folds_spread_every_class():
    labels = np.repeat([0.0, 1.0, 2.0], [10, 7, 1])
    fold = folds(labels, 2, np.random.default_rng(0))
    assert np.bincount(fold).tolist() == [9, 9]
    for label in range(3):
        assert np.ptp(np.bincount(fold[labels == label], minlength=2)) <= 1


def loop(X, y, **more):
    model = ally.ConstrainedClassifier(hidden=(32,), epochs=60, batch_size=16)
    return ally.Loop(X, y, strategy="uherding", model=model, random_state=0, **more)


def held_out_of(some):
    return some._learner.held_out(some.fit(), some._pool, some._code)


def test_labelled_samples_are_predicted_by_networks_that_never_saw_them():
    """Labels at random: learnt by heart where they are trained on, a guess where they are not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 100)), np.full(200, np.nan)
    y[:100] = rng.integers(2, size=100)
    some = loop(X, y)
    found = held_out_of(some)
    seen = some._learner.predict(some.fit(), X[:100])
    assert (seen.predictions.numpy() == y[:100]).mean() > 0.95
    assert len(found.labels) == 100
    assert 0.35 < (found.probabilities.argmax(1) == found.labels).double().mean() < 0.65
    heat = some.ask(5).report["temperature"]
    assert heat == temperature(found)
    assert heat > 3, "a guess that is made with confidence is called a guess"


def test_validation_samples_are_what_is_held_out_if_there_are_any():
    scene, truth = blobs("classification", n=200, labelled=40), blobs("classification", n=90, labelled=90, seed=1)
    some = loop(scene.X, scene.y, validation=(truth.X, truth.y))
    found = held_out_of(some)
    assert found.labels.tolist() == truth.y.astype(int).tolist()
    assert torch.equal(found.probabilities, some._learner.predict(some.fit(), truth.X).probabilities)


def test_a_single_label_is_not_held_out():
    scene = blobs("classification", labelled=1)
    assert loop(scene.X, scene.y, classes=[0, 1, 2]).ask(4).report["temperature"] is None
