"""Models that this user did not write: ours are made anew and predict the same, what lies in them is refused."""

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from ally.data import as_source
from ally.errors import DataError, ModelError
from ally.learning.stored_estimator import as_bytes, as_text, from_text
from ally.learning.trained import Trained
from ally.learning.training import Training
from ally.loop import Loop

X = np.random.default_rng(0).normal(size=(60, 4))
TWO, THREE, NUMBERS = (X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5]), X[:, 0] * 10
OURS = {
    "linear": ("linear", THREE),
    "linear of numbers": ("linear", NUMBERS),
    "graph": ("graph", THREE),
    "graph of numbers": ("graph", NUMBERS),
    "network": ("linear-network", THREE),
    "extra trees": (ExtraTreesClassifier(3), THREE),
    "extra trees of numbers": (ExtraTreesRegressor(3), NUMBERS),
    "forest": (RandomForestClassifier(3, max_leaf_nodes=5), TWO),
    "boosting": (GradientBoostingClassifier(n_estimators=3), TWO),
    "boosting of three classes": (GradientBoostingClassifier(n_estimators=3), THREE),
    "boosting of numbers": (GradientBoostingRegressor(n_estimators=3, loss="huber"), NUMBERS),
    "histograms": (HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3), TWO),
    "histograms of three classes": (HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3), THREE),
    "histograms of numbers": (HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3), NUMBERS),
    "gaussian process": ("gaussian-process", NUMBERS),
}
Edit = Callable[[dict[str, Any]], None]


def train(model: Any, labels: Any = TWO) -> Trained:
    task = "regression" if labels is NUMBERS else "classification"
    training = Training(epochs=2, device="cpu")
    return Loop(X, labels, strategy="random", model=model, task=task, random_state=0, training=training).trained()


def write_file(trained: Trained, edit: Edit = lambda facts: None, **changed: torch.Tensor | None) -> bytes:
    """The file of a model with its header edited and tensors changed, or left out; somebody else's, as it is not
    signed."""
    facts, tensors = trained.fit.packed()
    facts.pop("signature", None)
    classes = None if trained.fit.classes is None else list(trained.fit.classes)
    facts = {"version": 2, "task": trained.fit.task, "classes": classes, "about": {}, **facts}
    edit(facts)
    kept = {name: value for name, value in {**tensors, **changed}.items() if value is not None}
    return save(kept, {"ally": json.dumps(facts)})


def change_archive(trained: Trained, edit: Callable[[dict[str, bytes]], None]) -> torch.Tensor:
    """The estimator of a model, its members changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(trained.fit.packed()[1]["estimator"].numpy().tobytes())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    edit(members)
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return torch.frombuffer(bytearray(made.getvalue()), dtype=torch.uint8)


def change_nodes(trained: Trained, field: str, value: float) -> torch.Tensor:
    """The first node of each tree changed."""

    def edit(members: dict[str, bytes]) -> None:
        for name, content in members.items():
            array = np.load(io.BytesIO(content)) if name.endswith(".npy") else np.empty(0)
            if array.dtype.names and field in array.dtype.names:
                array[field][0] = value
                changed = io.BytesIO()
                np.save(changed, array)
                members[name] = changed.getvalue()

    return change_archive(trained, edit)


@pytest.mark.parametrize("name", OURS)
def test_our_learners_are_made_anew(name):
    trained = train(*OURS[name])
    again = Trained.from_bytes(write_file(trained))
    one, other = (each.look(as_source(X)) for each in (trained, again))
    assert torch.equal(one.embeddings, other.embeddings)
    assert torch.equal(one.predictions, other.predictions)
    assert one.probabilities is None or torch.equal(one.probabilities, other.probabilities)
    # What was made anew is written and read as any other.
    assert torch.equal(Trained.from_bytes(again.to_bytes()).look(as_source(X)).predictions, one.predictions)


@pytest.mark.parametrize("model", [KNeighborsClassifier(3), SVC(probability=True), LogisticRegression()])
def test_other_estimators_are_read_only_by_whoever_wrote_them(model, monkeypatch, tmp_path):
    data = train(model).to_bytes()
    assert Trained.from_bytes(data).predict(as_source(X))[0].tolist()
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "of-another-user"))
    with pytest.raises(DataError, match="was not written by you on this machine and cannot be checked"):
        Trained.from_bytes(data)


def test_without_a_state_folder_a_process_reads_its_own_models(monkeypatch):
    monkeypatch.setenv("ALLY_STATE", "/dev/null/none")
    data = train(KNeighborsClassifier(3)).to_bytes()
    assert len(Trained.from_bytes(data).predict(as_source(X))[0]) == 60


@pytest.mark.parametrize("part", ["columns", "shape", "geometry", "estimator"])
def test_a_signature_is_for_all_of_an_estimator(part):
    facts, tensors = train(KNeighborsClassifier(3)).fit.packed()
    head = {"version": 2, "task": "classification", "classes": [0, 1], "about": {}}
    if part == "estimator":
        tensors["estimator"] = as_bytes(KNeighborsClassifier(2).fit(X, TWO), None)
    else:
        facts[part] = {"columns": [1, 0], "shape": [2, 2], "geometry": "nowhere"}[part]
    with pytest.raises(DataError, match="was not written by you"):
        Trained.from_bytes(save(tensors, {"ally": json.dumps(head | facts)}))


TREE_FAULTS = {
    "goes round": ("left_child", 0, "no node after its parent"),
    "leads out": ("right_child", 10**6, "no node after its parent"),
    "leads back": ("right_child", -7, "no node after its parent"),
    "column beyond": ("feature", 4, "a column beyond the 4"),
    "column before": ("feature", -1, "a column beyond the 4"),
}
HISTOGRAM_FAULTS = {
    "goes round": ("left", 0, "no node after its parent"),
    "leads out": ("right", 10**6, "no node after its parent"),
    "column beyond": ("feature_idx", 10**9, "a column beyond the 4"),
    "column before": ("feature_idx", -1, "a column beyond the 4"),
    "categories": ("is_categorical", 1, "splits by categories"),
}


@pytest.mark.parametrize("fault", TREE_FAULTS)
@pytest.mark.parametrize("name", ["extra trees", "forest", "boosting", "boosting of numbers"])
def test_a_tree_that_lies_is_refused(name, fault):
    field, value, said = TREE_FAULTS[fault]
    trained = train(*OURS[name])
    with pytest.raises(DataError, match=said):
        Trained.from_bytes(write_file(trained, estimator=change_nodes(trained, field, value)))


@pytest.mark.parametrize("fault", HISTOGRAM_FAULTS)
def test_a_tree_of_histograms_that_lies_is_refused(fault):
    field, value, said = HISTOGRAM_FAULTS[fault]
    trained = train(*OURS["histograms"])
    with pytest.raises(DataError, match=said):
        Trained.from_bytes(write_file(trained, estimator=change_nodes(trained, field, value)))


HEADERS: dict[str, tuple[str, Edit, str]] = {
    "unknown entry": ("linear", lambda facts: facts.update(extra=1), "unknown entry 'extra'"),
    "a sample without numbers": ("linear", lambda facts: facts.update(shape=[0]), "samples have"),
    "a huge sample": ("network", lambda facts: facts.update(shape=[10**9]), "belongs"),
    "a sample beyond all": ("network", lambda facts: facts.update(shape=[10**9] * 4), "samples have"),
    "a larger network": ("network", lambda facts: facts.update(model="resnet18", shape=[3, 32, 32]), "belongs"),
    "a deeper network": ("network", lambda facts: facts.update(model="mlp"), "belongs"),
    "an unknown network": ("network", lambda facts: facts.update(model="os:system"), "is not one of"),
    "two builders": (
        "network",
        lambda facts: facts.update(own="mine:build", model="os:system"),
        "built by 'mine:build' and by 'os:system'",
    ),
    "classes of numbers": ("linear of numbers", lambda facts: facts.update(classes=["a"]), "there are 1 classes"),
    "no classes": ("linear", lambda facts: facts.update(classes=None), "there are no classes"),
    "a class twice": ("linear", lambda facts: facts.update(classes=["a", "b", "a"]), "not all different"),
    "a class that is no text": (
        "linear",
        lambda facts: facts.update(classes=["a", "b", "\ud800"]),
        r"classes'\]\[2\] is '.ud800'",
    ),
    "a class without end": ("linear", lambda facts: facts.update(classes=["a", "b", "c" * 20_000]), "20000 characters"),
    "another number of classes": ("linear", lambda facts: facts.update(classes=["a", "b"]), "belongs"),
    "an endless scale": ("linear of numbers", lambda facts: facts.update(target=[0.0, float("inf")]), "inf"),
    "columns beyond": ("forest", lambda facts: facts.update(columns=[0, 2]), "which are"),
    "a column twice": ("forest", lambda facts: facts.update(columns=[0, 0]), "which are"),
    "another width": ("forest", lambda facts: facts.update(shape=[5]), "reads 4 columns"),
    "no width": ("forest", lambda facts: facts.update(shape=None), "reads 4 columns"),
    "leaves of no forest": ("boosting", lambda facts: facts.update(geometry="leaves"), "is not a forest"),
    "another task": ("forest", lambda facts: facts.update(task="regression", classes=None), "does no regression"),
    "a huge projection": (
        "forest",
        lambda facts: facts.update(geometry="transformed", projected=10**12),
        "inconsistent",
    ),
}


@pytest.mark.parametrize("fault", HEADERS)
def test_a_header_that_lies_is_refused(fault):
    name, edit, said = HEADERS[fault]
    with pytest.raises(DataError, match=said):
        Trained.from_bytes(write_file(train(*OURS[name]), edit))


def test_learners_are_counted_before_any_is_built():
    facts: dict[str, Any] = {"kind": "words", "learners": []}
    for _ in range(9):
        facts = {"kind": "words", "learners": [facts]}
    wide = {"kind": "average", "weights": [1.0] * 100, "learners": [{"kind": "words", "learners": [{}]}] * 100}
    for learner in (facts, wide, {"kind": "average", "weights": [0.5], "learners": []}):
        text = json.dumps({"version": 2, "task": "classification", "classes": ["a", "b"], **learner})
        with pytest.raises(DataError, match=r"too many learners|no 'model'|weights of"):
            Trained.from_bytes(save({"x": torch.zeros(1)}, {"ally": text}))


@pytest.mark.parametrize("name", ["weights", "intercept", "input.mean", "input.scale"])
def test_tensors_that_lie_are_refused(name):
    trained = train(*OURS["linear"])
    shape = trained.fit.packed()[1][name].shape
    for value in (torch.zeros(7), torch.zeros(shape, dtype=torch.bfloat16), torch.full(shape, torch.nan).double()):
        with pytest.raises(DataError, match=r"belongs|finite|positive|the means"):
            Trained.from_bytes(write_file(trained, **{name: value}))
    if name != "input.mean":
        with pytest.raises(DataError, match="is missing"):
            Trained.from_bytes(write_file(trained, **{name: None}))


def change_plan(edit: Edit) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        plan = json.loads(members["schema.json"])
        edit(plan)
        members["schema.json"] = json.dumps(plan).encode()

    return change


def hold(**node: Any) -> Edit:
    """Another node as a setting of the estimator."""
    return lambda plan: plan["content"]["content"].update(class_weight={"__id__": 1, **node})


NESTED = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
ARCHIVES: dict[str, tuple[Callable[[dict[str, bytes]], None], str]] = {
    "a method": (
        change_plan(hold(__class__="Path", __module__="pathlib", __loader__="MethodNode", content={})),
        "as a 'MethodNode', which is never read",
    ),
    "an operator": (
        change_plan(hold(__class__="methodcaller", __module__="operator", __loader__="OperatorFuncNode", attrs={})),
        "'OperatorFuncNode', which is never read",
    ),
    "a function": (
        change_plan(hold(__class__="log", __module__="numpy", __loader__="FunctionNode", content={})),
        "'FunctionNode', which is never read",
    ),
    "a type": (
        change_plan(hold(__class__="Popen", __module__="subprocess", __loader__="TypeNode")),
        "'subprocess.Popen' where",
    ),
    "an object": (
        change_plan(hold(__class__="Popen", __module__="subprocess", __loader__="ObjectNode")),
        "subprocess.Popen",
    ),
    "a text as a number": (
        change_plan(
            lambda plan: plan["content"]["content"].update(
                n_estimators={"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '"9"'}
            )
        ),
        "n_estimators='9', which is not allowed",
    ),
    "a protocol of the future": (change_plan(lambda plan: plan.update(protocol=99)), "protocol 99"),
    "no plan": (lambda members: members.pop("schema.json") and None, "cannot be read"),
    "a plan that is no JSON": (lambda members: members.update({"schema.json": b"{" * 9}), "cannot be read"),
    "a deep plan": (lambda members: members.update({"schema.json": b"[" * 10**5}), "cannot be read"),
    "a plan of a million lists": (
        lambda members: members.update({"schema.json": b"[" + b"[]," * 10**6 + b"0]"}),
        "1000001 nodes",
    ),
    "a bomb": (lambda members: members.update({"bomb.npy": bytes(200 * 2**20)}), "would unpack to"),
}


@pytest.mark.parametrize("fault", ARCHIVES)
def test_an_archive_that_lies_is_refused(fault):
    edit, said = ARCHIVES[fault]
    trained = train(*OURS["extra trees"])
    with pytest.raises(DataError, match=said):
        Trained.from_bytes(write_file(trained, estimator=change_archive(trained, edit)))


def test_an_array_whose_header_never_ends_is_refused():
    def edit(members: dict[str, bytes]) -> None:
        members.update({name: members[name].replace(b"}", b" ") for name in members if name.endswith(".npy")})

    trained = train(*OURS["extra trees"])
    with pytest.raises(DataError, match="cannot be read"):
        Trained.from_bytes(write_file(trained, estimator=change_archive(trained, edit)))


def test_an_array_whose_header_lies_takes_no_memory():
    lie = io.BytesIO()
    np.lib.format.write_array_header_1_0(lie, {"descr": "<f8", "fortran_order": False, "shape": (777777777777,)})

    def edit(members: dict[str, bytes]) -> None:
        members.update({name: lie.getvalue() + bytes(8) for name in members if name.endswith(".npy")})

    trained = train(*OURS["extra trees"])
    with pytest.raises(DataError, match=r"shape \(777777777777,\) .* has 8 bytes"):
        Trained.from_bytes(write_file(trained, estimator=change_archive(trained, edit)))


KEPT = [
    LogisticRegression(C=3.0),
    KNeighborsClassifier(3, metric="manhattan"),
    SVC(kernel="linear", class_weight={"yes": 2.0}),
    make_pipeline(StandardScaler(), RandomForestClassifier(7, random_state=1)),
    make_pipeline(TfidfVectorizer(ngram_range=(1, 2), stop_words=["a", "the"], dtype=np.float32), LogisticRegression()),
]


@pytest.mark.parametrize("model", KEPT, ids=str)
def test_a_kept_estimator_is_the_same(model):
    assert repr(from_text(as_text(model))) == repr(model)


def test_what_a_kept_estimator_may_not_say_is_dropped():
    model = from_text(as_text(RandomForestClassifier(n_jobs=7, verbose=3, random_state=np.random.RandomState(0))))
    assert (model.n_jobs, model.verbose, model.random_state) == (None, 0, None)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (make_pipeline(StandardScaler(), SVC(), memory="folder"), "has a memory, which loads pickles"),
        (make_pipeline(TfidfVectorizer(input="filename"), SVC()), "input='filename', which is not allowed"),
        (make_pipeline(TfidfVectorizer(token_pattern="(a+)+$"), SVC()), "token_pattern='"),
        (make_pipeline(FunctionTransformer(np.log1p), SVC()), "'FunctionNode', which is never read"),
        (SVC(kernel="of another kind"), "kernel='of another kind', which is not allowed"),
    ],
    ids=str,
)
def test_a_kept_estimator_has_no_path_function_or_memory(model, said):
    with pytest.raises(ModelError, match=said):
        as_text(model)
