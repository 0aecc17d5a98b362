import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ally import ConstrainedClassifier, ConstrainedRegressor
from ally.errors import InputError, LabelError, OneClassError
from ally.learning.objectives import PDCL

MINIBATCHES = "a sample that is there twice meets other samples in its minibatches than one of weight 2"


@parametrize_with_checks(
    [ConstrainedClassifier(hidden=(16,), epochs=15, lr=0.005), ConstrainedRegressor(hidden=(16,), epochs=30, lr=0.02)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": MINIBATCHES,
        "check_sample_weight_equivalence_on_sparse_data": MINIBATCHES,
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def test_classifier_learns_and_reports(digits):
    X, y = digits
    clf = ConstrainedClassifier(hidden=(64,), eps=0.2, random_state=0).fit(X[:600], y[:600])
    assert clf.score(X[600:], y[600:]) > 0.9
    assert clf.duals_.shape == (600,)
    assert (clf.duals_ >= 0).all()
    assert clf.embed(X[:5]).shape == (5, 64)
    np.testing.assert_allclose(clf.predict_proba(X[:50]).sum(1), 1.0, rtol=1e-12)
    assert clf.report_.positive_duals == pytest.approx((clf.duals_ > 0).mean(), abs=1e-6)
    losses = -np.log(np.maximum(clf.predict_proba(X[:600])[np.arange(600), y[:600]], 1e-30))
    assert clf.report_.slacks.largest == pytest.approx(losses.max() - 0.2, abs=1e-4)


def test_predicted_duals_rank_unseen_losses(digits):
    X, y = digits
    clf = ConstrainedClassifier(hidden=(64,), eps=0.01, random_state=0).fit(X[:400], y[:400])
    predicted = clf.predict_duals(X[400:])
    assert (predicted >= 0).all()
    p = clf.predict_proba(X[400:])[np.arange(len(X) - 400), y[400:]]
    assert spearmanr(predicted, -np.log(np.maximum(p, 1e-12))).statistic > 0.8


def test_regressor_learns_in_the_targets_units():
    X, y = load_diabetes(return_X_y=True)
    model = ConstrainedRegressor(hidden=(32,), epochs=60, validation=0.2, random_state=0)
    assert model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.3
    shifted = clone(model).fit(X[:300], 1000 * y[:300] + 5e6)
    np.testing.assert_allclose(shifted.predict(X[300:]), 1000 * model.predict(X[300:]) + 5e6, rtol=1e-3)


def test_validation_share_and_pair(digits):
    X, y = digits
    share = ConstrainedClassifier(hidden=(16,), validation=0.25, patience=2, random_state=0).fit(X[:200], y[:200])
    assert share.report_.samples == 150
    assert share.report_.validation_loss is not None
    assert len(share.duals_) == len(share.training_rows_) == 150
    strict = ConstrainedClassifier(
        hidden=(16,), validation=0.25, eps=np.where(y[:200] == 3, 1e3, 0.0), random_state=0
    ).fit(X[:200], y[:200])
    assert (strict.duals_[y[:200][strict.training_rows_] == 3] == 0).all()
    pair = ConstrainedClassifier(hidden=(16,), validation=(X[200:300], y[200:300]), patience=2, random_state=0).fit(
        X[:200], y[:200]
    )
    assert pair.report_.samples == 200
    for bad in (0, 1.0, -0.5):
        with pytest.raises(InputError, match="not a share"):
            ConstrainedClassifier(validation=bad).fit(X[:50], y[:50])


def test_declared_classes(digits):
    X, y = digits
    few = y < 3
    clf = ConstrainedClassifier(hidden=(8,), epochs=3, classes=range(10)).fit(X[few], y[few])
    assert clf.predict_proba(X[:3]).shape == (3, 10)
    with pytest.raises(LabelError, match=r"label 0 is not one of the 2 classes \(3, 4\)"):
        ConstrainedClassifier(classes=[3, 4]).fit(X, y)
    with pytest.raises(OneClassError, match="needs at least two classes"):
        ConstrainedClassifier().fit(X[:20], np.zeros(20))


def test_objectives_and_secondary_loss(digits):
    X, y = digits[0][:200], digits[1][:200]
    erm = ConstrainedClassifier(hidden=(8,), epochs=3, objective="erm").fit(X, y)
    assert not hasattr(erm, "duals_")
    again = ConstrainedClassifier(hidden=(8,), epochs=3).fit(X, y).set_params(objective="erm").fit(X, y)
    assert not hasattr(again, "duals_")
    with pytest.raises(InputError, match="has no dual variables"):
        erm.predict_duals(X)
    brier = ConstrainedClassifier(hidden=(8,), epochs=3, secondary_loss="brier", random_state=0).fit(X, y)
    same = ConstrainedClassifier(hidden=(8,), epochs=3, random_state=0).fit(X, y)
    assert not np.allclose(brier.duals_, same.duals_)
    given = ConstrainedClassifier(hidden=(8,), epochs=3, objective=PDCL(dual_init=1.0, dual_lr=0.0)).fit(X, y)
    assert (given.duals_ == 1).all()
    per_class = ConstrainedClassifier(hidden=(8,), epochs=3, eps={k: 100.0 if k == 3 else 0.0 for k in range(10)}).fit(
        X, y
    )
    assert (per_class.duals_[y == 3] == 0).all()
    assert (per_class.duals_[y != 3] > 0).all()


def test_hidden_is_checked(digits):
    with pytest.raises(InputError, match="must list positive widths"):
        ConstrainedClassifier(hidden=(0,)).fit(*digits)


def test_works_inside_scikit_learn(digits):
    X, y = digits[0][:300], digits[1][:300].astype(str)
    scores = cross_val_score(
        make_pipeline(MinMaxScaler(), ConstrainedClassifier(hidden=(32,), epochs=20, random_state=0)), X, y, cv=3
    )
    assert scores.mean() > 0.8


def test_a_fitted_estimator_does_not_carry_its_samples():
    import pickle

    X = np.random.default_rng(0).normal(size=(20_000, 20))
    clf = ConstrainedClassifier(hidden=(4,), epochs=1, batch_size=4096).fit(X, np.arange(20_000) % 2)
    assert len(pickle.dumps(clf)) < X.nbytes / 5


def test_verbose_prints_progress(digits, capsys):
    ConstrainedClassifier(hidden=(4,), epochs=10, verbose=True).fit(digits[0][:50], digits[1][:50])
    assert "train 10/10" in capsys.readouterr().out


def test_weights_count_as_copies_and_none_leaves_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    wrong = y.copy()
    wrong[::4] = 1 - wrong[::4]
    trusted = np.where(wrong == y, 1.0, 0.0)
    model = ConstrainedClassifier(hidden=(), epochs=60, batch_size=80, lr=0.05, random_state=0)
    left_out = clone(model).fit(X, wrong, sample_weight=trusted)
    assert left_out.training_rows_.tolist() == np.flatnonzero(trusted).tolist()
    assert left_out.score(X, y) > 0.9
    plain, equal = clone(model).fit(X, wrong), clone(model).fit(X, wrong, sample_weight=np.full(80, 3.0))
    np.testing.assert_array_equal(plain.predict_proba(X), equal.predict_proba(X))
    light = clone(model).fit(X, wrong, sample_weight=np.where(wrong == y, 1.0, 0.01))
    assert light.score(X, y) >= plain.score(X, y)
    assert light.duals_.shape == (80,)


def test_a_full_batch_of_weight_two_is_that_of_two_copies():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    y = X @ np.ones(3) + rng.normal(size=30)
    counts = rng.integers(1, 4, size=30)
    settings = {"hidden": (), "epochs": 40, "lr": 0.05, "objective": "erm", "random_state": 0}
    weighted = ConstrainedRegressor(batch_size=30, **settings).fit(X, y, sample_weight=counts)
    copied = ConstrainedRegressor(batch_size=int(counts.sum()), **settings).fit(X.repeat(counts, 0), y.repeat(counts))
    # The features and the target are scaled by the samples there are, copies included, so the two differ a little.
    assert np.corrcoef(weighted.predict(X), copied.predict(X))[0, 1] > 0.98


def test_weights_that_cannot_be_are_refused(digits):
    X, y = digits
    model = ConstrainedClassifier(hidden=(16,), epochs=1)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X[:20], y[:20], sample_weight=np.full(20, -1.0))
    with pytest.raises(ValueError, match="non-zero"):
        model.fit(X[:20], y[:20], sample_weight=np.zeros(20))
