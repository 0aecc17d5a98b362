"""Fitted learners as files: what today's code writes, and what version 1 wrote."""

from pathlib import Path

import numpy as np
import pytest

from ally.errors import DataError, ModelError
from ally.learning.trained import Trained
from ally.learning.training import Training
from ally.loop import Loop
from ally.models import MLP
from ally.sources import as_source

FILES = Path(__file__).parent / "files"
X = np.random.default_rng(0).normal(size=(60, 4))
QUICK = Training(epochs=3, device="cpu")


def loop(model="linear-network", y=None, **more):
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no").astype(object) if y is None else y
    return Loop(X, y, strategy="random", model=model, random_state=0, training=QUICK, **more)


def test_a_classifier_of_version_1_is_read():
    found = Trained.read(FILES / "version1_classes.safetensors")
    labels, probability = found.predict(as_source(X[:5]))
    assert labels.tolist() == ["yes", "yes", "no", "yes", "yes"]
    np.testing.assert_allclose(probability, [0.5350291, 0.6720721, 0.6132872, 0.7372756, 0.5158521], atol=1e-6)
    assert found.about == {"fingerprint": {"kind": "table"}}
    assert found.fit.shape == (4,)


def test_a_regressor_of_version_1_is_read():
    labels, probability = Trained.read(FILES / "version1_numbers.safetensors").predict(as_source(X[:5]))
    np.testing.assert_allclose(labels, [98.524170, 98.100423, 100.231980, 98.171254, 99.487846], atol=1e-4)
    assert probability is None


def test_what_is_written_is_read_back():
    trained = loop().trained()
    again = Trained.from_bytes(trained.to_bytes())
    for one, other in zip(trained.predict(as_source(X)), again.predict(as_source(X)), strict=True):
        assert (one == other).all()


def test_a_network_of_your_own_predicts_and_is_not_written():
    trained = loop(MLP((4,), 2, (8,))).trained()
    assert len(trained.predict(as_source(X))[0]) == 60
    with pytest.raises(ModelError, match="a network of your own cannot be rebuilt from a file"):
        trained.to_bytes()


def test_a_kind_that_is_not_known_is_named():
    data = loop().trained().to_bytes().replace(b'\\"kind\\": \\"network\\"', b'\\"kind\\": \\"mistery\\"')
    with pytest.raises(DataError, match="unknown kind of learner 'mistery'"):
        Trained.from_bytes(data)
