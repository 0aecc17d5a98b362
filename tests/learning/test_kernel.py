"""The Gaussian process: its prediction is exact for its length and noise, weights count copies, and it can be kept."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.estimator_checks import parametrize_with_checks

from ally.data import as_source
from ally.errors import ModelError
from ally.learning.kernel import GaussianProcess
from ally.learning.learner import Examples
from ally.learning.objectives import ERM, PDCL
from ally.learning.resolve import resolve_learner
from ally.learning.trained import Trained
from ally.rng import streams

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(60, 2)) * [1, 30]
Y = np.sin(2 * X[:, 0]) + X[:, 1] / 30 + 5 + 0.05 * RNG.standard_normal(60)


def test_predictions_are_those_of_scikit_learn_for_the_same_length_and_noise():
    found = GaussianProcess().fit(X, Y)
    theirs = GaussianProcessRegressor(RBF(np.sqrt(found.length_)), alpha=found.noise_, optimizer=None)
    scaled = (X - X.mean(0)) / X.std(0)
    theirs.fit(scaled, Y - Y.mean())
    assert found.predict(X) == pytest.approx(theirs.predict(scaled) + Y.mean(), abs=1e-8)


def test_the_likeliest_length_and_noise_are_taken():
    found = GaussianProcess().fit(X, Y)
    scaled, y = (X - X.mean(0)) / X.std(0), Y - Y.mean()

    def likelihood(length, noise):
        K = np.exp(-((scaled[:, None] - scaled) ** 2).sum(2) / (2 * length)) + noise * np.eye(60)
        variance = y @ np.linalg.solve(K, y) / 60
        return -30 * np.log(variance) - np.linalg.slogdet(K)[1] / 2

    best = likelihood(found.length_, found.noise_)
    others = [(2, 1), (0.5, 1), (1, 10**0.5), (1, 10**-0.5)]
    assert all(best >= likelihood(found.length_ * a, found.noise_ * b) for a, b in others)


def test_it_learns_what_is_smooth():
    found = GaussianProcess().fit(X, Y)
    fresh = RNG.uniform(-1.8, 1.8, size=(200, 2)) * [1, 30]
    truth = np.sin(2 * fresh[:, 0]) + fresh[:, 1] / 30 + 5
    assert np.sqrt(np.mean(np.square(found.predict(fresh) - truth))) < 0.15


def test_a_weight_counts_a_sample_so_often():
    weighted = GaussianProcess().fit(X, Y, np.repeat([1.0, 2.0], 30))
    copies = GaussianProcess().fit(X[np.r_[0:60, 30:60]], Y[np.r_[0:60, 30:60]])
    assert (weighted.length_, weighted.noise_) == pytest.approx((copies.length_, copies.noise_))
    assert weighted.predict(X) == pytest.approx(copies.predict(X), abs=1e-8)


@pytest.mark.parametrize("y", [np.full(60, 3.0), np.where(np.arange(60) < 1, 1.0, 0.0)])
def test_targets_without_anything_to_learn(y):
    assert np.isfinite(GaussianProcess().fit(np.ones((60, 2)), y).predict(X)).all()


def test_it_is_a_model_for_numbers_with_duals_and_can_be_kept():
    learner = resolve_learner("gaussian-process", (2,))
    assert "is not a classifier" in learner.supports(ERM(), "classification")
    fitted = learner.fit(Examples.of(X, Y), PDCL(), streams(0))
    assert fitted.duals["labelled"].shape == (60,)
    again = Trained.from_bytes(Trained(fitted).to_bytes()).fit
    assert again.predict(as_source(X)).tolist() == fitted.predict(as_source(X)).tolist()
    with pytest.raises(ModelError, match="not a classifier"):
        learner.fit(Examples.of(X, np.arange(60) % 2, range(2)), ERM(), streams(0))


@parametrize_with_checks([GaussianProcess()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
