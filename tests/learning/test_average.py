"""Several learners as one."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.svm import LinearSVC

import ally
from ally.data import Once, as_source
from ally.data.arrays.memory import ArraySource
from ally.errors import DataError
from ally.learning.average import Average, FittedAverage
from ally.learning.estimator import Estimator
from ally.learning.learner import Examples
from ally.learning.linear import LinearLearner
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL
from ally.learning.posterior import SpreadReadout
from ally.learning.trained import Trained
from ally.learning.training import Training
from ally.rng import streams

X = np.random.default_rng(0).standard_normal((120, 4)).astype(np.float32)
TARGETS = X @ [2.0, -1.0, 0.5, 0.0] + np.abs(X[:, 0])
CLASSES = (TARGETS > 0.5).astype(int)
TREES = Estimator(ExtraTreesClassifier(10), ExtraTreesRegressor(10))
BOTH = Average((LinearLearner(), TREES), (0.75, 0.25))


def fitted(learner, classes=None, objective=ERM()):
    labels = TARGETS if classes is None else CLASSES
    ready = learner.prepared(as_source(X), np.arange(120))
    return ready.fit(Examples.of(X[:50], labels[:50], classes), objective, streams(0))


def seen(fit):
    return fit.view(as_source(X), np.arange(120))


@pytest.mark.parametrize("classes", [None, range(2)])
def test_it_predicts_the_weighted_mean_of_what_each_would_predict_alone(classes):
    mean, parts = seen(fitted(BOTH, classes)), [seen(fitted(one, classes)) for one in BOTH.learners]
    if classes is None:
        torch.testing.assert_close(mean.predictions, 0.75 * parts[0].predictions + 0.25 * parts[1].predictions)
    else:
        expected = 0.75 * parts[0].probabilities.double() + 0.25 * parts[1].probabilities.double()
        torch.testing.assert_close(mean.probabilities.double(), expected, atol=1e-7, rtol=0)
        assert torch.equal(mean.predictions, expected.argmax(1))
    assert torch.equal(mean.embeddings, parts[0].embeddings)


def test_draws_are_shared_by_weight():
    fit = fitted(BOTH)
    x = fit.inputs(as_source(X), np.arange(120))
    drawn = torch.cat(list(fit.sampled(x, 8, 0)), dim=1)
    assert drawn.shape == (120, 8)
    alone = fit.fits[0].outputs(x.of(fit.fits[0]))
    assert (drawn == alone).all(0).sum() == 6
    spread = SpreadReadout(8)((fit,), x, 0, 0)
    torch.testing.assert_close(spread, drawn.std(1, correction=0).float())
    assert (spread > 0).all()


def test_constraints_are_put_on_the_first_alone():
    one, other = fitted(BOTH, objective=PDCL()), fitted(BOTH.lead, objective=PDCL())
    assert torch.equal(one.duals["labelled"], other.duals["labelled"])
    assert type(one) is type(other)


def test_it_supports_what_all_of_them_support():
    assert BOTH.supports(ERM(), "classification", ("probabilities",)) is None
    odd = Average((LinearLearner(), Estimator(LinearSVC())), (0.5, 0.5))
    assert "predict_proba" in str(odd.supports(ERM(), "classification", ("probabilities",)))
    assert odd.supports(PDCL(), "classification") is None


@pytest.mark.parametrize("classes", [None, range(2)])
def test_what_is_written_is_read_back(classes):
    network = Network.named("mlp", Training(epochs=2, device="cpu"))
    trained = Trained(fitted(Average((*BOTH.learners, network), (0.5, 0.3, 0.2)), classes))
    again = Trained.from_bytes(trained.to_bytes())
    for one, other in zip(trained.predict(as_source(X)), again.predict(as_source(X)), strict=True):
        assert (one is None) == (other is None)
        assert one is None or (one == other).all()


def test_learners_that_share_a_tensor_are_written():
    """As those of texts do, which scale the same vectors."""
    one = fitted(LinearLearner(), range(2))
    average = FittedAverage((one, one), (0.5, 0.5), one.report)
    again = Trained.from_bytes(Trained(average).to_bytes())
    assert (again.predict(as_source(X))[0] == one.predict(as_source(X))).all()


def test_a_file_that_hides_a_builder_among_its_learners_is_refused():
    facts = {"version": 2, "task": "regression", "classes": None, "kind": "average", "weights": [1.0]}
    facts["learners"] = [{"kind": "network", "own": "os:system", "model": "os:system", "shape": [1], "target": [0, 1]}]
    data = save({"0.network.w": torch.zeros(1)}, {"ally": json.dumps(facts)})
    with pytest.raises(DataError, match="was built by 'os:system'"):
        Trained.from_bytes(data)
    with pytest.raises(DataError, match="inconsistent"):
        Trained.from_bytes(save({"w": torch.zeros(1)}, {"ally": json.dumps({**facts, "learners": []})}))


def test_a_block_is_read_once():
    class Counting(ArraySource):
        reads = 0

        def read(self, rows):
            type(self).reads += 1
            return super().read(rows)

    fitted(BOTH).view(Counting(X), np.arange(120))
    assert Counting.reads == 1
    once = Once(Counting(X))
    assert np.array_equal(once.read(np.arange(3)), X[:3])
    assert np.array_equal(once.read(np.arange(4)), X[:4])
    assert Counting.reads == 3


@pytest.mark.parametrize(
    ("then", "reads"), [([2, 5, 9], 1), ([5], 1), ([5, 2], 1), ([9, 5, 2, 5], 2), ([2, 6], 2), ([11], 2), ([], 2)]
)
def test_some_of_the_rows_read_last_are_not_read_again(then, reads):
    class Counting(ArraySource):
        reads = 0

        def read(self, rows):
            type(self).reads += 1
            return super().read(rows)

    once = Once(Counting(X))
    for rows in (np.asarray([2, 5, 9, 10]), np.asarray(then, dtype=np.int64)):
        assert np.array_equal(once.read(rows), X[rows])
    assert Counting.reads == reads


@pytest.mark.parametrize("strategy", ["ally", "badge", "bald", "dropquery", "ally-clusters", "coreset"])
def test_strategies_take_it(strategy):
    y = [*CLASSES[:40], *[None] * 80]
    q = ally.query(X, y, n=3, strategy=strategy, model=BOTH, random_state=0)
    assert len(q) == 3
