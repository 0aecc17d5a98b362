import numpy as np
import pytest
import torch

from ally.data import as_source
from ally.errors import NonFiniteInput
from ally.execution.memory import Scratch
from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import ERM
from ally.learning.snapshot import view
from ally.learning.training import Training
from ally.models import MLP
from ally.rng import Streams

X = np.random.default_rng(0).normal(size=(3000, 5)).astype(np.float32)
Y = (X[:, 0] > 0).astype(float)


def fitted(task="classification"):
    learner = Network(MLP, Training(epochs=2))
    examples = Examples.of(X[:50], Y[:50], (0, 1)) if task == "classification" else Examples.of(X[:50], X[:50, 1])
    return learner.fit(examples, ERM(), Streams(0))


def test_chunks_and_memory_maps_give_the_same_bits():
    fit, source, rows = fitted(), as_source(X), np.arange(10, 2990)
    with Scratch() as scratch:
        whole = view(fit, source, rows, scratch)
    with Scratch(budget=1000) as scratch:
        mapped = view(fit, source, rows, scratch, chunk_size=3)
        assert scratch.mapped >= 4 * whole.embeddings.numel()
        assert torch.equal(whole.embeddings, mapped.embeddings)
        assert torch.equal(whole.probabilities, mapped.probabilities)
        assert torch.equal(whole.predictions, mapped.predictions)


def test_rows_are_absolute():
    fit, source = fitted(), as_source(X)
    with Scratch() as scratch:
        part = view(fit, source, np.asarray([5, 700]), scratch)
        embedding, outputs = fit.embed(torch.from_numpy(X[[5, 700]]))
    torch.testing.assert_close(part.embeddings, embedding)
    torch.testing.assert_close(part.probabilities, outputs.softmax(1))
    assert part.rows.tolist() == [5, 700]


def test_regression_predictions_are_in_the_targets_units():
    learner = Network(MLP, Training(epochs=30))
    fit = learner.fit(Examples.of(X[:200], 1e4 + 100 * X[:200, 1].astype(float)), ERM(), Streams(0))
    with Scratch() as scratch:
        seen = view(fit, as_source(X), np.arange(200, 400), scratch)
    assert np.corrcoef(seen.predictions, X[200:400, 1])[0, 1] > 0.9
    assert float(seen.predictions.mean()) == pytest.approx(1e4, abs=50)


def test_a_network_that_overflows_is_reported_by_row():
    bad = X.copy()
    bad[17] = 3e38
    with Scratch() as scratch, pytest.raises(NonFiniteInput, match="for sample 17"):
        view(fitted(), as_source(bad), np.arange(100), scratch)
