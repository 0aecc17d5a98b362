"""Estimators of LightGBM, XGBoost and skorch, each with the real library: labels of any form, files, refusals."""

import re
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from ally.data import as_source
from ally.errors import DataError, MissingPart, ModelError
from ally.learning.estimator import Estimator
from ally.learning.learner import Examples
from ally.learning.objectives import ERM, PDCL
from ally.learning.stored_estimator import as_text, from_text
from ally.learning.trained import Trained
from ally.loop import Loop
from ally.rng import streams
from ally.testing.learner import check_learner

X = np.random.default_rng(0).normal(size=(150, 4))
NUMBERS = np.digitize(X[:, 0], [-0.4, 0.4])
NAMES = np.asarray(["low", "middle", "high"])
KNOWN = 60


class Layers(nn.Module):
    def __init__(self, outputs=3, kind=nn.Identity):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, outputs), kind())

    def forward(self, x):
        assert x.dtype == torch.float32
        return self.layers(x)


def xgb(**settings):
    return pytest.importorskip("xgboost").XGBClassifier(**{"n_estimators": 6, "n_jobs": 1} | settings)


def lgbm(**settings):
    common = {"n_estimators": 6, "n_jobs": 1, "verbose": -1}
    return pytest.importorskip("lightgbm").LGBMClassifier(**common | settings)


def skorch_net(**settings):
    skorch = pytest.importorskip("skorch")
    common = {"criterion": nn.CrossEntropyLoss, "max_epochs": 15, "lr": 0.3, "batch_size": 16}
    return skorch.NeuralNetClassifier(Layers, train_split=None, verbose=0, **(common | settings))


def numbers_of(kind):
    skorch = pytest.importorskip("skorch")
    return {
        "xgboost": lambda: pytest.importorskip("xgboost").XGBRegressor(n_estimators=8, n_jobs=1),
        "lightgbm": lambda: pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=8, n_jobs=1, verbose=-1),
        "skorch": lambda: skorch.NeuralNetRegressor(
            Layers, module__outputs=1, max_epochs=30, lr=0.1, batch_size=16, train_split=None, verbose=0
        ),
    }[kind]()


CLASSIFIERS = {"xgboost": xgb, "lightgbm": lgbm, "skorch": skorch_net}


def known(labels, nothing):
    given = np.full(len(X), nothing, dtype=object if nothing is None else np.float64)
    given[:KNOWN] = labels[:KNOWN]
    return given


@pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (known(NAMES[NUMBERS], None), None),
        (known(NUMBERS, np.nan), None),
        (known(np.where(NUMBERS == 1, 0, NUMBERS), np.nan), [0, 1, 2]),
        (known(NAMES[np.where(NUMBERS == 1, 0, NUMBERS)], None), list(NAMES)),
    ],
    ids=["texts", "whole numbers beside NaN", "numbers with a gap", "a class without labels"],
)
def test_labels_of_any_form_are_learned_and_answers_have_their_names(make, labels, classes):
    loop = Loop(X, labels, model=make(), strategy="margin", classes=classes, random_state=0)
    assert len(loop.ask(3).ids) == 3
    fit, given = loop.fit(), labels[:KNOWN]
    assert (loop.predict(X[:KNOWN]) == given).mean() > 0.85
    p = loop.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)
    used = [name in set(given.tolist()) for name in fit.classes]
    assert used.count(False) == (1 if classes else 0)
    assert (p[:, ~np.asarray(used)] == 0).all()
    assert [fit.classes[k] for k in p.argmax(1)] == loop.predict(X).tolist()


@pytest.mark.parametrize("make", [xgb, skorch_net])
def test_a_class_may_be_missing_in_a_fold_alone(make):
    labels = NAMES[np.where(NUMBERS == 1, 0, NUMBERS)[:40]].astype(object)
    labels[7] = "middle"
    classes = ("high", "low", "middle")
    numbers = np.asarray([classes.index(name) for name in labels])
    learner = Estimator(make(), losses="out-of-fold")
    fitted = learner.fit(Examples.of(X[:40], numbers, classes), ERM(), streams(0))
    assert fitted.columns == (0, 1, 2)
    if make is xgb:
        duals = learner.fit(Examples.of(X[:40], numbers, classes), PDCL(), streams(0)).duals["labelled"]
        assert duals.argmax() == 7


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "skorch"])
def test_numbers_are_learned(kind):
    y = np.where(np.arange(150) < KNOWN, 3 * X[:, 0] + X[:, 1], np.nan)
    loop = Loop(X, y, model=numbers_of(kind), strategy="coreset", random_state=0)
    assert len(loop.ask(3).ids) == 3
    assert np.corrcoef(loop.predict(X), 3 * X[:, 0] + X[:, 1])[0, 1] > 0.8


def test_one_class_so_far_is_learned_by_xgboost():
    p = Loop(X, known(NAMES[0 * NUMBERS], None), model=xgb(), classes=["low", "high"]).predict_proba(X)
    assert (p == [1, 0]).all()


def test_a_search_over_settings_gets_numbers_too():
    model = CalibratedClassifierCV(xgb(), cv=2)
    loop = Loop(X, known(NAMES[NUMBERS], None), model=model, strategy="margin", random_state=0)
    assert (loop.predict(X[:KNOWN]) == NAMES[NUMBERS[:KNOWN]]).mean() > 0.9


def test_a_binary_network_of_skorch_gets_its_zeros_and_ones_as_floats():
    skorch = pytest.importorskip("skorch")

    class One(Layers):
        def forward(self, x):
            return super().forward(x)[:, 0]

    net = skorch.NeuralNetBinaryClassifier(One, module__outputs=1, max_epochs=15, lr=0.3, train_split=None, verbose=0)
    names = np.where(X[:, 0] > 0, "yes", "no").astype(object)
    loop = Loop(pd.DataFrame(X), known(names, None), model=net, strategy="margin", random_state=0)
    assert (loop.predict(pd.DataFrame(X)) == names).mean() > 0.8


@pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_they_keep_the_contract_of_learners(make):
    settings = {"min_child_samples": 3, "num_leaves": 5} if make is lgbm else {}
    check_learner(Estimator(make(**settings)))


KEPT = {
    "classes of lightgbm": (lgbm, NUMBERS),
    "two classes of lightgbm": (lgbm, NUMBERS > 0),
    "numbers of lightgbm": (lambda: make_pipeline(StandardScaler(), numbers_of("lightgbm")), X[:, 0] * 10),
    "classes of xgboost": (xgb, NAMES[NUMBERS]),
    "two classes of xgboost": (lambda: make_pipeline(StandardScaler(), xgb(max_depth=3)), NAMES[NUMBERS // 2]),
    "numbers of xgboost": (lambda: numbers_of("xgboost"), X[:, 0] * 10),
}


PIPELINES = ("numbers of lightgbm", "two classes of xgboost")


@cache
def train(name):
    make, labels = KEPT[name]
    task = "regression" if "numbers" in name else "classification"
    return Loop(X, labels, strategy="random", model=make(), task=task, random_state=0).trained()


@pytest.mark.parametrize("name", KEPT)
def test_boosted_trees_are_read_back_bit_for_bit(name):
    trained = train(name)
    again = Trained.from_bytes(trained.to_bytes())
    twice = Trained.from_bytes(again.to_bytes())
    seen, *others = (one.look(as_source(X)) for one in (trained, again, twice))
    for other in others:
        assert torch.equal(seen.embeddings, other.embeddings)
        assert torch.equal(seen.predictions, other.predictions)
        assert seen.probabilities is None or torch.equal(seen.probabilities, other.probabilities)


def test_a_model_of_a_library_that_is_not_here_says_so(monkeypatch):
    data = train("classes of lightgbm").to_bytes()
    again = Trained.from_bytes(data)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingPart, match="lightgbm, which is not installed: pip install lightgbm"):
        again.predict(as_source(X))


def test_settings_are_kept_as_values():
    kept = from_text(as_text(make_pipeline(StandardScaler(), lgbm(class_weight={"a": 2.0}, num_leaves=5))))
    # How many threads work is said where it is trained.
    assert kept[-1].get_params() == lgbm(class_weight={"a": 2.0}, num_leaves=5, n_jobs=None).get_params()
    assert from_text(as_text(xgb(max_depth=3, missing=-1.0))).get_params()["missing"] == -1.0


@pytest.mark.parametrize(
    "settings",
    [
        {"machines": "192.0.2.1:80", "num_machines": 2},
        {"forcedsplits_filename": "/etc/passwd"},
        {"objective": "binary machines=192.0.2.1:80"},
        {"objective": lambda y, p: (y, p)},
        {"boosting_type": "gbdt\ninput_model=x"},
        {"monotone_constraints": ["1 input_model=x"]},
    ],
)
def test_settings_that_reach_outside_are_not_kept(settings):
    with pytest.raises(ModelError, match="LGBMClassifier"):
        as_text(lgbm(**settings))


def test_what_is_kept_of_skorch_is_said():
    with pytest.raises(ModelError, match=r"network of skorch.*give the network itself as 'module:builder'"):
        as_text(make_pipeline(StandardScaler(), skorch_net()))
    with pytest.raises(ModelError, match="network of skorch"):
        Loop(X, NUMBERS, strategy="random", model=skorch_net(), random_state=0).trained().to_bytes()


def change(name, edit):
    """The file of a model whose text is edited."""
    trained = train(name)
    kept = Trained.from_bytes(trained.to_bytes()).fit.estimator
    text = edit(kept.text.tobytes().decode())
    assert text.encode() != kept.text.tobytes()
    kept.text = np.frombuffer(text.encode(), np.uint8)
    return Trained(replace(trained.fit, estimator=kept)).to_bytes()


@pytest.mark.parametrize("name", [name for name in KEPT if name not in PIPELINES])
def test_trees_of_somebody_else_are_made_anew_node_by_node(name, monkeypatch, tmp_path):
    trained = train(name)
    data = trained.to_bytes()
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "of-another-user"))
    again = Trained.from_bytes(data)
    one, other = (each.look(as_source(X)) for each in (trained, again))
    assert torch.equal(one.predictions, other.predictions)
    assert one.probabilities is None or torch.equal(one.probabilities, other.probabilities)


def replace_first(pattern, new):
    return lambda text: re.sub(pattern, new, text, count=1)


LIES = {
    "a column that is not there": ("classes of lightgbm", replace_first(r"split_feature=\d+", "split_feature=4")),
    "a column before the first": ("classes of lightgbm", replace_first(r"split_feature=\d+", "split_feature=-1")),
    "nodes that go round": ("classes of lightgbm", replace_first(r"left_child=-?\d+", "left_child=0")),
    "a leaf that is not there": ("classes of lightgbm", replace_first(r"right_child=-?\d+", "right_child=-99")),
    "too few leaves": ("classes of lightgbm", replace_first(r"leaf_value=\S+ ", "leaf_value=")),
    "a leaf that is no number": ("classes of lightgbm", replace_first(r"leaf_value=\S+", "leaf_value=nan")),
    "a split by categories": ("classes of lightgbm", replace_first(r"decision_type=\d+", "decision_type=3")),
    "categories": ("classes of lightgbm", replace_first("num_cat=0", "num_cat=1")),
    "linear leaves": ("classes of lightgbm", replace_first("is_linear=0", "is_linear=1")),
    "very many leaves": ("classes of lightgbm", replace_first(r"num_leaves=\d+", "num_leaves=2000000000")),
    "very many classes": ("classes of lightgbm", replace_first(r"num_class:3", "num_class:2000000000")),
    "another number of columns": ("classes of lightgbm", replace_first("Column_0 ", "")),
    "an objective that sets more": (
        "classes of lightgbm",
        replace_first("objective=multiclass ", "objective=multiclass machines=192.0.2.1 "),
    ),
    "no model of lightgbm": ("classes of lightgbm", lambda text: "tree"),
    "a column of xgboost": ("classes of xgboost", replace_first(r'"split_indices":\[\d+', '"split_indices":[4')),
    "a round of xgboost": ("classes of xgboost", replace_first(r'"left_children":\[\d+', '"left_children":[0')),
    "a child far away": ("classes of xgboost", replace_first(r'"right_children":\[\d+', '"right_children":[999')),
    "infinity": ("classes of xgboost", replace_first(r'"split_conditions":\[[^,]+', '"split_conditions":[1e999')),
    "categories of xgboost": ("classes of xgboost", replace_first(r'"split_type":\[0', '"split_type":[1')),
    "another class": ("classes of xgboost", replace_first(r'"tree_info":\[0', '"tree_info":[3')),
    "iterations": ("classes of xgboost", replace_first(r'"iteration_indptr":\[0,3', '"iteration_indptr":[0,300')),
    "another objective": ("classes of xgboost", replace_first('"name":"multi:softprob"', '"name":"rank:pairwise"')),
    "dropped trees": ("classes of xgboost", replace_first('"name":"gbtree"', '"name":"dart"')),
    "deep brackets": ("classes of xgboost", lambda text: "[" * 100_000),
    "very many lists": ("classes of xgboost", lambda text: f"[{'[],' * 700_000}[]]"),
    "no model of xgboost": ("classes of xgboost", lambda text: "{}"),
}


@pytest.mark.parametrize("lie", LIES)
def test_trees_that_lie_are_refused(lie, monkeypatch, tmp_path):
    data = change(*LIES[lie])
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "of-another-user"))
    with pytest.raises(DataError, match="boosted trees in the file cannot be read"):
        Trained.from_bytes(data)


def test_pipelines_of_somebody_else_are_refused(monkeypatch, tmp_path):
    data = train("numbers of lightgbm").to_bytes()
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "of-another-user"))
    with pytest.raises(DataError, match="was not written by you on this machine and cannot be checked"):
        Trained.from_bytes(data)
