"""The learners that `auto` chooses among, by kind of samples, and what a fit of each costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ally.data import Source
from ally.learning.graph import GraphLearner
from ally.learning.learner import Learner
from ally.learning.linear import LinearLearner
from ally.learning.network import Network
from ally.learning.objectives import ERM, Objective
from ally.learning.training import Training
from ally.learning.words import OfWords
from ally.types import Task

if TYPE_CHECKING:
    from ally.learning.estimator import Estimator


GRAPH = 10_000
"""Samples of the pool in the graph of the candidate."""


class Size(NamedTuple):
    """What the cost of a fit depends on."""

    labels: int
    features: int
    outputs: int


@dataclass(frozen=True)
class Candidate:
    """A learner to try, with a rough estimate of the seconds that a fit takes."""

    name: str
    learner: Learner
    seconds: Callable[[Size], float] = field(repr=False, compare=False)
    objective: Objective = ERM()
    """What it is measured under."""
    task: Task | None = None
    """The only task it is tried for; None for any."""


def slate_for(source: Source, training: Training = Training()) -> tuple[Candidate, ...]:
    """Images: linear on pixels, a small CNN. Sparse features (texts) and encoded samples: linear, a perceptron.
    Vectors: also linear with features scaled one by one, and linear on words if they are of texts. Tables: linear with
    features scaled one by one and all alike, extremely randomised trees, a Gaussian process for numbers, boosted trees
    (exact ones, and by histograms for many labels), a perceptron."""
    shape = source.shape
    linear = Candidate("linear", LinearLearner(), _linear_seconds)
    perceptron = Candidate("mlp", Network.named("mlp", training), _perceptron_seconds)
    # For numbers, trees and the Gaussian process are ahead of it (docs/learners.md).
    graph = Candidate("graph", GraphLearner(GRAPH, keep_in=training.graphs), _graph_seconds, task="classification")
    if len(shape) == 3 and min(shape[1:]) >= 8:
        return linear, graph, Candidate("cnn", Network.named("cnn", training), _convolution_seconds)
    if source.vectors:
        columns = Candidate("linear-columns", LinearLearner("columns"), _linear_seconds)
        if source.words is None:
            return linear, columns, graph, perceptron
        words = source.words
        return linear, columns, graph, Candidate("words", OfWords(LinearLearner()), _words_seconds(words)), perceptron
    if len(shape) != 1 or source.sparse:
        return linear, graph, perceptron
    common = Candidate("linear-common", LinearLearner("common"), _linear_seconds)
    return (
        linear,
        common,
        graph,
        Candidate("extra-trees", extra_trees(), _trees_seconds),
        Candidate("gaussian-process", gaussian_process(), _process_seconds),
        Candidate("gradient-boosting", gradient_boosting(), _boosting_seconds),
        Candidate("hist-gradient-boosting", hist_gradient_boosting(5), _histogram_seconds),
        perceptron,
    )


def extra_trees() -> Estimator:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    from ally.learning.estimator import Estimator

    return Estimator(ExtraTreesClassifier(), ExtraTreesRegressor())


def random_forest() -> Estimator:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    from ally.learning.estimator import Estimator

    return Estimator(RandomForestClassifier(), RandomForestRegressor())


def gradient_boosting() -> Estimator:
    """Many small steps, each on a part of the labels: for few labels far better than histograms."""
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    from ally.learning.estimator import Estimator

    settings = {"n_estimators": 300, "learning_rate": 0.05, "max_depth": 4, "subsample": 0.7, "min_samples_leaf": 3}
    return Estimator(GradientBoostingClassifier(**settings), GradientBoostingRegressor(**settings))


def hist_gradient_boosting(least: int = 20) -> Estimator:
    """With the usual 20 samples a leaf, it learns nothing from fewer than 40 labels."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    from ally.learning.estimator import Estimator

    settings = {"min_samples_leaf": least}
    return Estimator(HistGradientBoostingClassifier(**settings), HistGradientBoostingRegressor(**settings))


def gaussian_process() -> Estimator:
    from ally.learning.estimator import Estimator
    from ally.learning.kernel import GaussianProcess

    return Estimator(GaussianProcess())


def _linear_seconds(size: Size) -> float:
    n, axes = size.labels, min(size.labels, size.features)
    return 0.02 + 2e-9 * n**2 * size.features + 4e-8 * n * axes * size.outputs


def _graph_seconds(size: Size) -> float:
    return 0.1 + 1e-3 * min(size.labels, 400)


def _words_seconds(words: Source) -> Callable[[Size], float]:
    return lambda size: _linear_seconds(size._replace(features=math.prod(words.shape)))


def _trees_seconds(size: Size) -> float:
    return 0.1 + 2e-6 * size.labels * size.features


def _process_seconds(size: Size) -> float:
    return 0.01 + 13 * 1.5e-9 * size.labels**3


def _boosting_seconds(size: Size) -> float:
    return _scores(size) * (0.11 + 4e-5 * size.labels * size.features)


def _histogram_seconds(size: Size) -> float:
    return _scores(size) * (0.05 + size.features * (4e-4 + 1e-5 * size.labels))


def _scores(size: Size) -> int:
    """Trees that boosting adds at a time."""
    return size.outputs if size.outputs > 2 else 1


def _perceptron_seconds(size: Size) -> float:
    return 0.05 + 40 * math.ceil(size.labels / min(64, max(8, size.labels // 16))) * (7e-4 + 8e-7 * size.features)


def _convolution_seconds(size: Size) -> float:
    return 0.1 + 40 * math.ceil(size.labels / min(64, max(8, size.labels // 16))) * (1e-3 + 7e-6 * size.features)
