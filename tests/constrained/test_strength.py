"""The strength of a penalty: the minimum of the cross-validated error over the grid."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeCV

from ally.constrained.convex import Design
from ally.constrained.strength import grid, logistic_strength, ridge_strength
from ally.learning.splits import repeated_splits


def noisy(n, d, informative, rng):
    x = rng.standard_normal((n, d))
    return x, x[:, :informative].sum(axis=1) + rng.standard_normal(n)


@pytest.mark.parametrize(("n", "d"), [(60, 8), (40, 100)])
def test_ridge_is_leave_one_out_of_scikit_learn(n, d):
    x, y = noisy(n, d, 4, np.random.default_rng(0))
    design = Design(x)
    found = ridge_strength(design.rows, y, design.spread)
    theirs = RidgeCV(alphas=1 / (2 * grid(design.spread))).fit(x, y)
    assert pytest.approx(1 / (2 * theirs.alpha_)) == found.C
    assert found.error == pytest.approx(-theirs.best_score_, rel=1e-6)


def test_logistic_is_the_best_of_the_grid():
    rng = np.random.default_rng(1)
    x, value = noisy(80, 30, 3, rng)
    y = (value > 0).astype(int) + (value > 1.5)
    design = Design(x)
    splits = repeated_splits(y, 5, 1, rng, classes=True)
    found = logistic_strength(design.rows, y, 3, design.spread, splits)

    def error(C):
        losses = []
        for train, test in splits:
            model = LogisticRegression(C=C, tol=1e-8, max_iter=10_000).fit(x[train], y[train])
            losses += (-model.predict_log_proba(x[test])[np.arange(len(test)), y[test]]).tolist()
        return np.mean(losses)

    errors = [error(C) for C in grid(design.spread)]
    assert found.error == pytest.approx(min(errors), abs=2e-3)
    assert error(found.C) < min(errors) + 2e-3


def test_more_noise_asks_for_more_penalty():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((60, 20))
    design = Design(x)
    clean, chance = x[:, 0], rng.standard_normal(60)
    assert ridge_strength(design.rows, clean, design.spread).C > ridge_strength(design.rows, chance, design.spread).C


def test_units_do_not_matter():
    rng = np.random.default_rng(3)
    x, y = noisy(50, 10, 3, rng)
    large, small = Design(1e4 * x), Design(x)
    labels, splits = (y > 0).astype(int), repeated_splits((y > 0).astype(int), 5, 1, rng, classes=True)
    found = [logistic_strength(design.rows, labels, 2, design.spread, splits) for design in (large, small)]
    assert pytest.approx(found[1].C) == found[0].C * 1e8
    assert found[0].error == pytest.approx(found[1].error, rel=1e-3)


def test_every_class_trains_in_every_split():
    labels = np.array([0] * 20 + [1] * 7 + [2] * 2 + [3])
    splits = repeated_splits(labels, 5, 3, np.random.default_rng(0), classes=True)
    assert len(splits) == 15
    for train, test in splits:
        assert set(labels[train]) == {0, 1, 2, 3}
        assert 3 not in labels[test]
        assert not set(train) & set(test)
        assert len(train) + len(test) == len(labels)
    for repeat in range(3):
        measured = np.concatenate([test for _, test in splits[5 * repeat : 5 * repeat + 5]])
        assert sorted(measured.tolist()) == list(range(29))


def test_too_few_labels_give_no_split():
    rng = np.random.default_rng(0)
    assert repeated_splits(np.array([0, 1, 2]), 5, 2, rng, classes=True) == []
    assert repeated_splits(np.array([0.5]), 5, 2, rng, classes=False) == []
    assert len(repeated_splits(np.array([0.5, 1.5, 3.0]), 5, 1, rng, classes=False)) == 3
