"""Fitted learners as files: what today's code writes, and what version 1 wrote."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from ally import catalogue_names
from ally.data import as_source
from ally.errors import DataError, ModelError
from ally.learning import stored_estimator
from ally.learning.estimator import Estimator
from ally.learning.trained import Trained
from ally.learning.training import Training
from ally.loop import Loop
from ally.models import MLP

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


TEXTS = [f"{word} {k}" for k in range(30) for word in ("good", "bad")]
ESTIMATORS = {
    "trees": ExtraTreesClassifier(5),
    "leaves": Estimator(ExtraTreesClassifier(5), geometry="leaves"),
    "boosting": HistGradientBoostingClassifier(max_iter=3),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "neighbours": KNeighborsClassifier(),
    "calibrated": CalibratedClassifierCV(LinearSVC(), cv=2),
    "svm": LinearSVC(),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_written_and_read_back(name):
    trained = loop(ESTIMATORS[name]).trained().with_about({"fingerprint": {"kind": "table"}})
    again = Trained.from_bytes(trained.to_bytes())
    one, other = (each.look(as_source(X)) for each in (trained, again))
    assert torch.equal(one.embeddings, other.embeddings)
    assert torch.equal(one.predictions, other.predictions)
    assert (one.probabilities is None) or torch.equal(one.probabilities, other.probabilities)
    assert (trained.predict(as_source(X))[0] == again.predict(as_source(X))[0]).all()
    assert again.about == trained.about


def test_a_regressor_of_scikit_learn_is_written_and_read_back():
    trained = loop(Ridge(), X[:, 0] * 100, task="regression").trained()
    assert (Trained.from_bytes(trained.to_bytes()).predict(as_source(X))[0] == trained.predict(as_source(X))[0]).all()


def test_a_pipeline_of_texts_is_written_and_read_back():
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression())
    trained = Loop(TEXTS, ["pos", "neg"] * 30, strategy="random", model=pipe, random_state=0).trained()
    again = Trained.from_bytes(trained.to_bytes())
    source = as_source(TEXTS, objects=True)
    assert again.predict(source)[0].tolist() == ["pos", "neg"] * 30
    assert torch.equal(again.look(source).embeddings, trained.look(source).embeddings)


def test_types_that_are_not_trusted_are_neither_written_nor_read(monkeypatch):
    with pytest.raises(ModelError, match=r"FunctionTransformer|not a trusted type"):
        loop(make_pipeline(FunctionTransformer(_double), LogisticRegression())).trained().to_bytes()
    data = loop(ESTIMATORS["trees"]).trained().to_bytes()
    monkeypatch.setattr(stored_estimator, "TRUSTED", frozenset())
    with pytest.raises(DataError, match=r"holds sklearn\.tree\._tree\.Tree, which is not a trusted type"):
        Trained.from_bytes(data)


def _double(x):
    return 2 * x


def test_a_damaged_estimator_is_refused():
    facts, tensors = loop(ESTIMATORS["logistic"]).fit().packed()
    tensors["estimator"] = tensors["estimator"][:-40].clone()
    data = save(
        tensors, {"ally": json.dumps({"version": 2, "task": "classification", "classes": ["no", "yes"], **facts})}
    )
    with pytest.raises(DataError, match="cannot be read"):
        Trained.from_bytes(data)


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_models_of_a_test.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    yield "own_models_of_a_test"
    sys.modules.pop("own_models_of_a_test", None)


OWN = """
from sklearn.linear_model import LogisticRegression

class Mine(LogisticRegression):
    pass

def trees():
    from sklearn.ensemble import ExtraTreesClassifier
    return ExtraTreesClassifier(3)

def mine():
    return Mine()

def net():
    from functools import partial
    from ally.models import MLP
    return partial(MLP, hidden=(4,))

def build(shape, outputs):
    from ally.models import MLP
    return MLP(shape, outputs, (4,))

number = 3
"""


@pytest.mark.parametrize("builder", ["trees", "mine", "net", "build"])
def test_models_of_your_own_are_named_by_their_builder(own_module, builder):
    path = f"{own_module}:{builder}"
    trained = loop(path).trained()
    data = trained.to_bytes()
    if builder != "trees":
        with pytest.raises(DataError, match=f"was built by '{path}'; reading it runs that code"):
            Trained.from_bytes(data)
    again = Trained.from_bytes(data, trusted=[path])
    assert (again.predict(as_source(X))[0] == trained.predict(as_source(X))[0]).all()


def test_only_the_module_that_is_trusted_gives_classes(own_module, monkeypatch, tmp_path):
    path = f"{own_module}:mine"
    trained = loop(path).trained()
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "of-another-user"))
    again = Trained.from_bytes(trained.to_bytes(), trusted=[path])
    assert (again.predict(as_source(X))[0] == trained.predict(as_source(X))[0]).all()
    data = trained.to_bytes().replace(own_module.encode(), b"own_models_of_others")
    with pytest.raises(DataError, match="was built by 'own_models_of_others:mine'"):
        Trained.from_bytes(data, trusted=[path, f"{own_module}.deeper:mine"])
    with pytest.raises(DataError, match=f"holds '{own_module}.Mine', which was not written by you"):
        Trained.from_bytes(data, trusted=["own_models_of_others:mine"])
    assert "own_models_of_others" not in sys.modules


def test_builders_that_cannot_be_are_refused(own_module):
    with pytest.raises(ModelError, match=r"model='no_such_module:f' cannot be imported"):
        loop("no_such_module:f")
    with pytest.raises(ModelError, match=r"cannot be imported .*has no attribute 'nothing'"):
        loop(f"{own_module}:nothing")
    with pytest.raises(ModelError, match="is a int; name a function"):
        loop(f"{own_module}:number")


def test_a_module_that_only_this_process_finds_is_no_model_for_a_worker(own_module, monkeypatch):
    catalogue_names.ensure_model(f"{own_module}:trees")
    monkeypatch.delenv("PYTHONPATH")
    with pytest.raises(ModelError, match="can only be imported here"):
        catalogue_names.ensure_model(f"{own_module}:trees")
