"""Every learner keeps the contract: networks, estimators of several kinds, pipelines, and a class of a user's own."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ally.data.arrays.memory import ArraySource
from ally.data.encoders import Function, encode
from ally.errors import ModelError
from ally.learning.average import Average
from ally.learning.estimator import Estimator
from ally.learning.graph import GraphLearner
from ally.learning.learner import FitReport
from ally.learning.linear import LinearLearner
from ally.learning.losses import TargetScale
from ally.learning.network import Network
from ally.learning.objectives import ERM
from ally.learning.snapshot import Seen, by_blocks, predict_labels
from ally.learning.training import Training
from ally.models import MLP
from ally.testing.learner import CHECKS, bench_for

QUICK = Training(lr=0.01, epochs=12, device="cpu")


@dataclass(frozen=True, eq=False)
class FittedMeans:
    """Each class is its mean; samples go to the nearest."""

    means: torch.Tensor
    task: str
    classes: tuple
    report: FitReport
    shape: tuple
    duals: dict = field(default_factory=dict)
    unlabelled_rows: Any = None
    held_out: Any = None
    spreads: bool = False

    def inputs(self, source, rows):
        if source.shape != self.shape:
            raise ModelError(f"samples have shape {source.shape}, not {self.shape}")
        return torch.from_numpy(source.read(rows))

    def outputs(self, x):
        return (-torch.cdist(x, self.means)).softmax(1)

    def view(self, source, rows, **more):
        return by_blocks(self, source, rows, self.look, **more)

    def look(self, x, rows):
        p = self.outputs(x)
        return Seen(x.float(), p.float(), p.argmax(1))

    def predict(self, source):
        return predict_labels(self, source)

    def sampled(self, x, samples, seed):
        raise ModelError("there is one way to take a mean")

    def dropped(self, x, samples, rate, seed):
        return [self.outputs(x * (1 - rate)) for _ in range(samples)]

    def packed(self):
        raise ModelError("means are not kept")


@dataclass(frozen=True)
class Means:
    """A user's own learner, in thirty lines."""

    pull: float = 0.0

    def supports(self, objective, task, needs=()):
        return None if isinstance(objective, ERM) and task == "classification" else "class means have no constraints"

    def prepared(self, source, rows, chunk_size=None):
        return self

    def settled(self, examples, objective, streams, progress=None):
        return self

    def points(self, source, rows):
        return torch.from_numpy(source.read(rows)).float()

    def fit(self, examples, objective, streams, *, validation=None, unlabelled=None, progress=None, member=0):
        places = np.arange(len(examples)) if not member else streams.numpy("draw").integers(0, len(examples), 40)
        few, width = examples.at(places), examples.outputs
        x, labels = few.source.read(few.rows), few.labels
        means = np.stack([x[labels == k].mean(0) if (labels == k).any() else x.mean(0) for k in range(width)])
        report = FitReport(len(examples), 1, 1, 0.0, None if validation is None else 0.0, None, None, seconds=1e-6)
        return FittedMeans(torch.from_numpy(means), "classification", examples.classes, report, few.source.shape)


def texts(n=2100):
    rng = np.random.default_rng(0)
    words = {"sport": "ball goal team win", "food": "soup bread salt eat", "travel": "train road sea far"}
    labels = [list(words)[k % 3] for k in range(n)]
    return [" ".join(rng.choice(words[label].split(), 6)) + f" {k % 97}" for k, label in enumerate(labels)], labels


def vectors():
    """What an encoder makes of the texts: how often each letter is in them."""
    samples, labels = texts()
    encoder = Function(
        lambda some: [[text.count(letter) for letter in "aeorstn"] for text in some], "letters-1", "text"
    )
    return ArraySource(encode(encoder, samples), vectors=True), labels


TEXT = make_pipeline(TfidfVectorizer(), LogisticRegression())
CASES = {
    "mlp": (Network(partial(MLP, hidden=(16,)), QUICK, name="mlp"), "classification"),
    "dropout": (Network(partial(MLP, hidden=(16,), dropout=0.3), QUICK), "classification"),
    "mlp-regression": (Network(partial(MLP, hidden=(16,)), QUICK), "regression"),
    "linear": (LinearLearner(), "classification"),
    "linear-regression": (LinearLearner(), "regression"),
    "graph": (GraphLearner(), "classification"),
    "graph-regression": (GraphLearner(), "regression"),
    "graph-of-vectors": (GraphLearner(most=1500), "vectors"),
    "logistic": (Estimator(LogisticRegression()), "classification"),
    "ridge": (Estimator(Ridge()), "regression"),
    "extra-trees": (Estimator(ExtraTreesClassifier(15)), "classification"),
    "extra-trees-regression": (Estimator(ExtraTreesRegressor(15)), "regression"),
    "average": (Average((LinearLearner(), Estimator(ExtraTreesClassifier(15))), (0.6, 0.4)), "classification"),
    "average-regression": (Average((Estimator(ExtraTreesRegressor(15)), LinearLearner()), (0.6, 0.4)), "regression"),
    "leaves": (Estimator(ExtraTreesClassifier(10, n_jobs=2), geometry="leaves"), "classification"),
    "boosting": (
        Estimator(HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3)),
        "classification",
    ),
    "pipeline": (Estimator(make_pipeline(StandardScaler(), LogisticRegression())), "classification"),
    "forest-in-pipeline": (Estimator(make_pipeline(StandardScaler(), ExtraTreesClassifier(10))), "classification"),
    "texts": (Estimator(TEXT), "texts"),
    "neighbours": (Estimator(KNeighborsClassifier()), "classification"),
    "no-probabilities": (Estimator(LinearSVC()), "classification"),
    "encoder": (LinearLearner(), "vectors"),
    "own": (Means(), "classification"),
}


@pytest.fixture(scope="module")
def benches():
    made = {}

    def bench(name):
        if name not in made:
            learner, task = CASES[name]
            given = {"texts": texts, "vectors": vectors}
            made[name] = (
                bench_for(learner, "classification", *given[task]()) if task in given else bench_for(learner, task)
            )
        return made[name]

    return bench


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_contract(benches, name, check):
    check(benches(name))


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (lambda seen: replace(seen, predictions=seen.predictions + 1), "a_fitted_learner_says_what_it_should"),
        (lambda seen: replace(seen, embeddings=seen.embeddings + torch.rand(1)), "looking_has_no_side_effects"),
        (lambda seen: replace(seen, probabilities=seen.probabilities * 2), "a_fitted_learner_says_what_it_should"),
    ],
)
def test_broken_learners_are_found(monkeypatch, broken, check):
    plain = FittedMeans.view
    monkeypatch.setattr(FittedMeans, "view", lambda self, *args, **more: broken(plain(self, *args, **more)))
    with pytest.raises(AssertionError):
        next(one for one in CHECKS if one.__name__ == check)(bench_for(Means()))


def test_targets_scale_is_that_of_networks():
    assert TargetScale.of(np.array([1.0, 3.0])) == TargetScale(2.0, 1.0)
