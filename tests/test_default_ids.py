"""The default chooses the same samples of classes as when its weight was written as a margin."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import ally
from ally.features import Inputs
from ally.learning.average import Average
from ally.learning.estimator import Estimator
from ally.learning.linear import LinearLearner
from ally.learning.network import Network
from ally.learning.training import Training
from ally.models import MLP
from ally.scoring import Constant, Margin
from ally.selection import ByTask, Herding

SETS = {"digits": (load_digits, 60), "cancer": (load_breast_cancer, 30), "iris": (load_iris, 20)}
MARGIN = ally.Strategy(Margin(), ByTask(), first=Herding())
RECORDED = {
    ("digits", "linear"): [599, 573, 612, 625, 577, 391, 351, 82, 320, 563, 176, 183, 62, 91, 561],
    ("digits", "extra-trees"): [599, 410, 548, 262, 438, 328, 509, 156, 560, 612, 151, 418, 98, 573, 391],
    ("cancer", "linear"): [255, 114, 45, 441, 244, 56, 79, 565, 479, 511, 96, 174, 191, 353, 519],
    ("cancer", "extra-trees"): [506, 197, 225, 133, 561, 334, 178, 45, 157, 332, 533, 79, 496, 479, 271],
    ("iris", "linear"): [116, 29, 33, 131, 104, 26, 34, 77, 41, 136, 47, 95, 66, 48, 82],
    ("iris", "extra-trees"): [40, 131, 104, 29, 143, 85, 20, 121, 125, 77, 68, 136, 105, 95, 26],
}


def chosen(name, model, strategy="ally"):
    load, known = SETS[name]
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:700]
    labels = np.where(np.arange(len(rows)) < known, y[rows], np.nan)
    query = ally.query(X[rows], labels, n=15, strategy=strategy, model=model, task="classification", random_state=0)
    return query.ids.tolist()


@pytest.mark.parametrize(("name", "model"), RECORDED)
def test_ids_are_those_recorded_before(name, model):
    assert chosen(name, model) == RECORDED[name, model]


LEARNERS = {
    "random-forest": "random-forest",
    "hist-gradient-boosting": "hist-gradient-boosting",
    "gradient-boosting": "gradient-boosting",
    "mlp": "mlp",
    "network": Network(partial(MLP, hidden=(8,)), Training(epochs=3)),
    "average": Average((LinearLearner(), Estimator(ExtraTreesClassifier(10, random_state=0))), (0.5, 0.5)),
    "estimator": LogisticRegression(),
    "neighbours": KNeighborsClassifier(),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("model", LEARNERS.values(), ids=LEARNERS)
def test_ids_are_those_of_the_margin(model, name):
    assert chosen(name, model) == chosen(name, model, MARGIN)


@pytest.mark.parametrize("name", SETS)
def test_without_probabilities_the_ids_are_those_of_coverage(name):
    assert chosen(name, LinearSVC()) == chosen(name, LinearSVC(), ally.Strategy(Constant(), Herding(features=Inputs())))
