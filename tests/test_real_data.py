"""The core on the paper's own data, where it is at hand."""

import gzip

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

import ally


@pytest.fixture(scope="module")
def mnist(data_folder):
    images, labels = (
        np.frombuffer(
            gzip.decompress((data_folder / "mnist" / f"train-{kind}-ubyte.gz").read_bytes()), np.uint8, offset=offset
        )
        for kind, offset in (("images-idx3", 16), ("labels-idx1", 8))
    )
    return images.reshape(-1, 784)[:6000], labels[:6000].astype(int)


def test_predicted_duals_rank_the_true_losses_of_a_real_pool(mnist):
    X, y = mnist
    clf = ally.ConstrainedClassifier(eps=0.01, epochs=20, random_state=0).fit(X[:400], y[:400])
    losses = -np.log(np.maximum(clf.predict_proba(X[400:])[np.arange(len(X) - 400), y[400:]], 1e-30))
    assert spearmanr(clf.predict_duals(X[400:]), losses).statistic > 0.85


def test_ally_asks_for_harder_digits_than_chance(mnist):
    X, y = mnist
    known = np.where(np.arange(len(X)) < 300, y, -1)
    model = ally.ConstrainedClassifier(epochs=20)
    clf = ally.ConstrainedClassifier(epochs=20, random_state=0).fit(X[:300], y[:300])
    wrong = clf.predict(X) != y
    asked = {
        s: ally.query(X, known, n=100, missing_label=-1, strategy=s, model=model, random_state=0).ids
        for s in ("ally", "random")
    }
    assert wrong[asked["ally"]].mean() > 2 * wrong[asked["random"]].mean()
    assert len(np.unique(y[asked["ally"]])) >= 8


def test_parkinsons_regression(data_folder):
    table = pd.read_csv(data_folder / "parkinsons" / "parkinsons_updrs.data")
    X = table.drop(columns=["subject#", "motor_UPDRS", "total_UPDRS"])
    y = table["total_UPDRS"].where(np.arange(len(table)) < 200)
    for strategy in ("ally", "coreset", "lcmd"):
        q = ally.query(X, y, n=50, strategy=strategy, model="mlp", random_state=0)
        assert len(set(q.ids.tolist())) == 50
        assert q.why["predicted"].between(-50, 150).all()
    assert "regression" in q.notes[0]
