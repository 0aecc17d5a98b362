"""Model files and weights of campaigns that name code, lie about sizes, unpack without end, or mislead native code."""

from __future__ import annotations

import base64
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import skops.io
from case import HostileCase, Words
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ally import Campaign

Members = dict[str, bytes]
EditFacts = Callable[[dict[str, Any]], object]
EditMembers = Callable[[Members], object]

MODELS: dict[str, Any] = {
    "linear": "linear",
    "network": "linear-network",
    "trees": ExtraTreesClassifier(3),
    "boosting": GradientBoostingClassifier(n_estimators=3),
    "histograms": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3),
    "neighbours": KNeighborsClassifier(3, algorithm="kd_tree"),
    "balls": KNeighborsClassifier(3, algorithm="ball_tree"),
    "vectors": SVC(probability=True),
}
ON_FILE: tuple[Words, ...] = (
    ("predict", "{path}", "rows.csv"),
    ("predict", "{path}", "rows.csv", "--json", "--out", "predicted.csv"),
)
READING: tuple[Words, ...] = (
    ("predict", "{path}"),
    ("export", "{path}", "model.safetensors", "--model"),
    ("status", "{path}"),
)
ON_CAMPAIGN: tuple[Words, ...] = (*READING, ("retrain", "{path}"), ("predict", "{path}"))
REFUSED = r"inconsistent|belongs|train it again|train again|cannot be read|not a complete|is damaged"
GOES_ON = rf"{REFUSED}|runs that code|model 2|1 model written|samples  |s59,"
"""A campaign whose weights are not read says so, and is trained again."""
PLANTED = "import os\ndef go(*given):\n    open('../elsewhere/marker', 'w').close()\n    return go\n"


@cache
def make_files(name: str) -> tuple[bytes, bytes, bytes]:
    """A table, a campaign on it with a trained model, and the model, as `ally` makes them."""
    rng = np.random.default_rng(0)
    rows = [f"s{n},{n % 2 + rng.normal(0, 0.3):.3f},{rng.normal():.3f}" for n in range(60)]
    with tempfile.TemporaryDirectory() as made:
        table, place, model = (Path(made) / file for file in ("rows.csv", "foreign.db", "model.safetensors"))
        table.write_text("id,x,z\n" + "\n".join(rows) + "\n")
        with Campaign.create(
            place, table, classes=["a", "b"], model=MODELS[name], evaluate=0, automatic=False
        ) as campaign:
            campaign.relabel({f"s{n}": "ab"[n % 2] for n in range(24)})
            campaign.retrain()
            campaign.training.model().write(model)
        return table.read_bytes(), place.read_bytes(), model.read_bytes()


def edit_facts(data: bytes, edit: EditFacts) -> bytes:
    """A model file with other facts in its header; it may give another text for them."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    facts = json.loads(header["__metadata__"]["ally"])
    text = edit(facts)
    header["__metadata__"]["ally"] = text if isinstance(text, str) else json.dumps(facts)
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + data[8 + size :]


def edit_archive(data: bytes, edit: EditMembers) -> bytes:
    """A model file with other members in the archive of its estimator; it may give other bytes for the archive."""
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    first, end = header["estimator"]["data_offsets"]
    with zipfile.ZipFile(io.BytesIO(body[first:end])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    packed = edit(members)
    packed = packed if isinstance(packed, bytes) else pack_members(members)
    grown = len(packed) - (end - first)
    for name, one in header.items():
        if name != "__metadata__" and name != "estimator":
            one["data_offsets"] = [at + grown if at >= end else at for at in one["data_offsets"]]
    header["estimator"] |= {"shape": [len(packed)], "data_offsets": [first, first + len(packed)]}
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + body[:first] + packed + body[end:]


def pack_members(members: Members) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def edit_plan(edit: EditFacts) -> EditMembers:
    def change(members: Members) -> None:
        plan = json.loads(members["schema.json"])
        edit(plan)
        members["schema.json"] = json.dumps(plan).encode()

    return change


def hold(loader: str, path: str, **node: Any) -> EditMembers:
    """Something else as a setting of the estimator."""
    module, _, name = path.rpartition(".")
    held = {"__loader__": loader, "__class__": name, "__module__": module, "__id__": 1, **node}
    return edit_plan(lambda plan: plan["content"]["content"].update(class_weight=held))


def set_field(field: str, value: float) -> EditMembers:
    """In the first node of each tree."""

    def change(members: Members) -> None:
        for name in [name for name in members if name.endswith(".npy")]:
            array = np.load(io.BytesIO(members[name]))
            if field in (array.dtype.names or ()):
                array[field][0] = value
                packed = io.BytesIO()
                np.save(packed, array)
                members[name] = packed.getvalue()

    return change


def fill_whole_numbers(value: int) -> EditMembers:
    """Every array of whole numbers: places in trees of neighbours, and of support vectors."""

    def change(members: Members) -> None:
        for name in [name for name in members if name.endswith(".npy")]:
            array = np.load(io.BytesIO(members[name]))
            if array.dtype.kind == "i" and array.ndim:
                packed = io.BytesIO()
                np.save(packed, np.full_like(array, value))
                members[name] = packed.getvalue()

    return change


def lie_about_arrays(members: Members) -> None:
    lie = io.BytesIO()
    np.lib.format.write_array_header_1_0(lie, {"descr": "<f8", "fortran_order": False, "shape": (777777777777,)})
    members.update({name: lie.getvalue() + bytes(8) for name in members if name.endswith(".npy")})


def repeat_an_array(members: Members) -> None:
    """One array of 60 MB as every setting."""
    packed = io.BytesIO()
    np.save(packed, np.zeros(60 * 2**17))
    members["big.npy"] = packed.getvalue()
    node = {
        "__class__": "ndarray",
        "__module__": "numpy",
        "__loader__": "NdArrayNode",
        "type": "numpy",
        "file": "big.npy",
    }
    edit_plan(lambda plan: plan["content"]["content"].update({f"extra{n}": node for n in range(2000)}))(members)
    edit_plan(lambda plan: plan["content"]["key_types"]["content"].extend([STRING] * 2000))(members)


STRING = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode", "__id__": 2}


def pack_bomb(members: Members) -> bytes:
    """256 MB of zeros in one."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("schema.json", "w", force_zip64=True) as member,
    ):
        for _ in range(256):
            member.write(bytes(2**20))
    return made.getvalue()


def pack_many(members: Members) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for number in range(120_000):
            archive.writestr(str(number), b"")
    return made.getvalue()


def replace_plan(text: Callable[[], bytes]) -> EditMembers:
    return lambda members: members.update({"schema.json": text()})


def build_by(own: str, model: str | None = None) -> EditFacts:
    """As if the model were a network that `own` builds."""

    def edit(facts: dict[str, Any]) -> None:
        del facts["C"]
        facts.update(kind="network", own=own, model=model or own)

    return edit


def nest_learners(depth: int) -> EditFacts:
    def edit(facts: dict[str, Any]) -> str:
        learner = '{"kind": "words", "learners": [' * depth + "]}" * depth
        head = {key: facts[key] for key in ("version", "task", "classes", "about")}
        return json.dumps(head)[:-1] + f', "kind": "words", "learners": [{learner}]}}'

    return edit


HEADERS: dict[str, tuple[str, EditFacts, str, bool]] = {
    "a model built by os:system": (
        "linear",
        build_by("os:system"), "runs that code", True,
    ),
    "a model built by a module beside it": (
        "linear",
        build_by("planted:go"), "runs that code", False,
    ),
    "a builder checked and another called": (
        "linear",
        build_by("planted:go", "os:system"), REFUSED, True,
    ),
    "a model without a builder called os:system": (
        "network", lambda facts: facts.update(model="os:system"), REFUSED, False,
    ),
    "a builder in a learner of an average": (
        "network",
        lambda facts: json.dumps(
            {key: facts[key] for key in ("version", "task", "classes", "about")}
            | {"kind": "average", "weights": [1.0]}
            | {"learners": [{"own": "os:system", "model": "os:system", "shape": [2], "target": [0, 1]}]}
        ),
        "runs that code", False,
    ),
    "a sample of a billion numbers": ("linear", lambda facts: facts.update(shape=[10**9]), REFUSED, True),
    "a network of a billion inputs": (
        "network", lambda facts: facts.update(shape=[10**9], model="mlp"), REFUSED, False,
    ),
    "a network of gigabytes": (
        "network", lambda facts: facts.update(shape=[3, 30000, 30000], model="resnet18"), REFUSED, False,
    ),
    "very many classes": (
        "network", lambda facts: facts.update(classes=[str(n) for n in range(150_000)]), REFUSED, False,
    ),
    "learners within learners": ("linear", nest_learners(20), REFUSED, False),
    "learners within learners beyond end": ("linear", nest_learners(50_000), REFUSED, False),
    "a class that is no text": ("linear", lambda facts: facts.update(classes=["a", "\ud800"]), REFUSED, False),
    "facts that are a list": ("linear", lambda facts: "[]", REFUSED, False),
    "a signature of another": ("neighbours", lambda facts: facts.update(signature="é" * 64), REFUSED, False),
    "a projection of terabytes": (
        "neighbours", lambda facts: facts.update(geometry="transformed", projected=2**40), REFUSED, False,
    ),
    "a fingerprint that lies": (
        "linear", lambda facts: facts["about"]["fingerprint"].update({"from": 7}), REFUSED, True,
    ),
    "a figure that lies": (
        "linear", lambda facts: facts["about"].update(measured={"labels": "x", "by": 3}), REFUSED, False,
    ),
    "labels that lie": ("linear", lambda facts: facts["about"].update(labels=["\x1b[2J"]), REFUSED, False),
}  # fmt: skip
ARCHIVES: dict[str, tuple[str, EditMembers, bool]] = {
    "a method in an estimator": (
        "trees", hold("MethodNode", "pathlib.Path", content={"func": "touch", "obj": {}}), True,
    ),
    "an operator in an estimator": ("trees", hold("OperatorFuncNode", "operator.methodcaller", attrs={}), False),
    "os.system in an estimator": ("trees", hold("FunctionNode", "os.system"), False),
    "a function of an older form": (
        "trees",
        lambda members: (
            hold("FunctionNode", "os.system", content={"module_path": "os", "function": "system"})(members),
            edit_plan(lambda plan: plan.update(protocol=0))(members),
        ),
        False,
    ),
    "a partial in an estimator": ("trees", hold("PartialNode", "functools.partial", content={}), False),
    "a type in an estimator": ("trees", hold("TypeNode", "subprocess.Popen"), True),
    "an object in an estimator": ("trees", hold("ObjectNode", "subprocess.Popen"), False),
    "a module that is imported": ("trees", hold("ObjectNode", "planted.Go"), False),
    "a module as the estimator": (
        "trees", edit_plan(lambda plan: plan.update(__module__="planted", __class__="Go")), False,
    ),
    "an archive that unpacks to hundreds of its size": ("trees", pack_bomb, True),
    "an archive of many members": ("trees", pack_many, False),
    "an array of terabytes": ("trees", lie_about_arrays, False),
    "an array again and again": ("trees", repeat_an_array, False),
    "a plan without end": ("trees", replace_plan(lambda: b"[" * 10**6), False),
    "a plan of empty lists": ("trees", replace_plan(lambda: b"[" + b"[]," * (14 * 10**6) + b"0]"), False),
    "a plan of numbers": ("trees", replace_plan(lambda: b"[" + b"1.5," * (11 * 10**6) + b"0]"), False),
    "a plan of one long text": ("trees", replace_plan(lambda: b'"' + b"x" * (47 * 2**20) + b'"'), False),
    "a plan within the limits": (
        "trees", replace_plan(lambda: b"[" + b"{},\"aaaaaa\"," * 590_000 + b"0]"), False,
    ),
    "a plan that is no archive": ("trees", lambda members: b"PK\5\6" + bytes(18), False),
    "a tree that goes round": ("trees", set_field("left_child", 0), True),
    "a tree that leads out": ("trees", set_field("right_child", 10**12), False),
    "a tree that looks beyond": ("trees", set_field("feature", 10**9), False),
    "a boosted tree that goes round": ("boosting", set_field("right_child", 0), False),
    "a boosted tree that leads back": ("boosting", set_field("left_child", -(10**6)), False),
    "a boosted tree that looks beyond": ("boosting", set_field("feature", -(10**9)), False),
    "a tree of histograms that goes round": ("histograms", set_field("left", 0), False),
    "a tree of histograms that leads out": ("histograms", set_field("right", 2**31), False),
    "a tree of histograms that looks beyond": ("histograms", set_field("feature_idx", 2**40), False),
    "a tree of histograms with categories": ("histograms", set_field("is_categorical", 1), False),
    "a tree of neighbours that leads out": ("neighbours", fill_whole_numbers(2**40), False),
    "a ball tree that leads out": ("balls", fill_whole_numbers(2**40), False),
    "support vectors that are not there": ("vectors", fill_whole_numbers(2**30), False),
}  # fmt: skip


def make_model(name: str, edit: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        table, _, model = make_files(name)
        (folder / "rows.csv").write_bytes(table)
        (folder / "planted.py").write_text(PLANTED)
        path = folder / "model.safetensors"
        path.write_bytes(edit(model))
        return path

    return make


def make_campaign(
    name: str, edit: Callable[[bytes], bytes] = bytes, settings: Callable[[], dict[str, Any]] = dict
) -> Callable[[Path], Path]:
    """A campaign whose weights, and settings, somebody has edited."""

    def make(folder: Path) -> Path:
        table, campaign, _ = make_files(name)
        (folder / "rows.csv").write_bytes(table)
        (folder / "planted.py").write_text(PLANTED)
        path = folder / "foreign.db"
        path.write_bytes(campaign)
        with sqlite3.connect(path) as connection:
            (data,) = connection.execute("SELECT data FROM weights").fetchone()
            connection.execute("UPDATE weights SET data = ?", [edit(data)])
            (text,) = connection.execute("SELECT settings FROM campaign").fetchone()
            connection.execute("UPDATE campaign SET settings = ?", [json.dumps({**json.loads(text), **settings()})])
        connection.close()
        return path

    return make


def keep(estimator: Any) -> Callable[[], dict[str, Any]]:
    """Settings that keep an estimator as `ally` would not."""
    return lambda: {"model": "skops," + base64.b64encode(skops.io.dumps(estimator)).decode()}


def choose_linear() -> dict[str, Any]:
    return {"model": "linear"}


def make_with_memory(folder: Path) -> Path:
    """A pipeline whose memory is a folder of pickles."""
    store = folder / "store"
    store.mkdir()
    (store / "output.pkl").write_bytes(b"cos\nsystem\n(S'touch ../elsewhere/marker'\ntR.")
    return make_campaign("linear", settings=keep(make_pipeline(StandardScaler(), SVC(), memory="store")))(folder)


def make_header_of(size: int) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        length = int.from_bytes(data[:8], "little")
        return (length + size).to_bytes(8, "little") + data[8 : 8 + length] + b" " * size + data[8 + length :]

    return edit


ALLOWED = "allowed, from now on"
TRUSTED: tuple[Words, ...] = (("trust", "{path}", "--yes"), ("retrain", "{path}"))
CASES = [
    *(
        HostileCase(name, make_model(model, lambda data, edit=edit: edit_facts(data, edit)), answer, ON_FILE, short)
        for name, (model, edit, answer, short) in HEADERS.items()
    ),
    *(
        HostileCase(name, make_model(model, lambda data, edit=edit: edit_archive(data, edit)), REFUSED, ON_FILE, short)
        for name, (model, edit, short) in ARCHIVES.items()
    ),
    HostileCase(
        "a generator that is called",
        make_model(
            "trees",
            lambda data: edit_archive(data, hold("RandomGeneratorNode", "numpy.random.Generator", content={})),
        ),
        "s59,|predictions written",
        ON_FILE,
    ),
    HostileCase("a header of 60 megabytes", make_model("linear", make_header_of(60 * 2**20)), REFUSED, ON_FILE),
    HostileCase("half a model", make_model("trees", lambda data: data[: len(data) // 2]), REFUSED, ON_FILE),
    HostileCase(
        "weights built by os:system",
        make_campaign("linear", lambda data: edit_facts(data, HEADERS["a model built by os:system"][1])),
        GOES_ON,
        ON_CAMPAIGN,
        short=True,
    ),
    HostileCase(
        "weights and a campaign built by a module beside them",
        make_campaign(
            "linear",
            lambda data: edit_facts(data, HEADERS["a model built by a module beside it"][1]),
            lambda: {"model": "planted:go"},
        ),
        GOES_ON,
        READING,
    ),
    HostileCase(
        "a kind of data beside the campaign",
        make_campaign("linear", settings=lambda: {"options": {"kind": "planted:go"}}),
        f"{GOES_ON}|names code",
        READING,
    ),
    HostileCase(
        "weights with a tree that goes round",
        make_campaign("trees", lambda data: edit_archive(data, ARCHIVES["a tree that goes round"][1]), choose_linear),
        GOES_ON,
        ON_CAMPAIGN,
    ),
    HostileCase(
        "weights with support vectors that are not there",
        make_campaign("vectors", lambda data: edit_archive(data, fill_whole_numbers(2**30)), choose_linear),
        GOES_ON,
        ON_CAMPAIGN,
    ),
    HostileCase(
        "weights that are two models of nothing",
        make_campaign("linear", lambda data: b"ally: two models" + b"\xff" * 8),
        GOES_ON,
        ON_CAMPAIGN,
    ),
    HostileCase("a kept estimator with a memory", make_with_memory, f"{ALLOWED}|has a memory", TRUSTED, short=True),
    HostileCase("a kept estimator with a memory, not trusted", make_with_memory, GOES_ON, READING),
    HostileCase(
        "a kept estimator that reads files",
        make_campaign("linear", settings=keep(make_pipeline(TfidfVectorizer(input="filename"), LogisticRegression()))),
        f"{ALLOWED}|is not allowed",
        TRUSTED,
    ),
    HostileCase(
        "a kept estimator that is no archive",
        make_campaign("linear", settings=lambda: {"model": "skops," + base64.b64encode(b"PK" * 99).decode()}),
        f"{ALLOWED}|cannot be read",
        TRUSTED,
    ),
]
