import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch.utils.data import TensorDataset

import ally
from ally.data import open_pool, open_source
from ally.errors import InputError, LabelError, NonFiniteInput

rng = np.random.default_rng(0)
X = torch.as_tensor(rng.normal(size=(30, 3)), dtype=torch.float32)
Y = torch.as_tensor(np.where(np.arange(30) < 12, np.arange(30) % 2, np.nan))


def open_campaign(source, **options):
    return ally.Campaign.create("memory", source, **options)


@pytest.mark.parametrize("shape", [(30,), (30, 1)])
def test_labels_in_a_tensor_dataset_are_taken(shape):
    data = TensorDataset(X, Y.reshape(shape))
    plain = ally.query(X, Y, n=5, model="linear", random_state=0)
    for q in (
        ally.query(data, n=5, model="linear", random_state=0),
        ally.Loop(data, model="linear", random_state=0, hygiene=ally.Hygiene()).ask(5),
    ):
        assert q.ids.tolist() == plain.ids.tolist()
        assert any("the second tensor of the TensorDataset holds the labels" in note for note in q.notes)
    with open_campaign(data) as campaign:
        assert campaign.labels() == {row: row % 2 for row in range(12)}
    with open_campaign(data, label="none") as campaign:
        assert campaign.labels() == {}
    with open_campaign(TensorDataset(X, Y, Y), label="none") as campaign:
        assert campaign.labels() == {}
    told = ally.query(data, [*["a", "b"] * 6, *[None] * 18], n=5, model="linear")
    assert not any("second tensor" in note for note in told.notes)


def test_tensors_that_may_all_be_labels_are_asked_about():
    for data in (TensorDataset(X, Y, Y), TensorDataset(X, torch.zeros(30, 2))):
        for door in (lambda data: ally.query(data, n=2), ally.Loop, open_campaign):
            with pytest.raises(LabelError, match=r"which are labels is not known.*dataset\.tensors\[0\]"):
                door(data)
    assert len(ally.query(TensorDataset(X), n=2)) == 2


def query(X, y=None, **options):
    return ally.query(X, y, **{"n": 5, "model": "linear", "random_state": 0, "hygiene": None} | options)


def loop(X, y=None, **options):
    return ally.Loop(X, y, **{"model": "linear", "random_state": 0} | options).ask(5)


QUERIES = pytest.mark.parametrize("ask", [query, loop])
NUMBERS, KNOWN = X.numpy().astype(float), [None if label != label else int(label) for label in Y.tolist()]
CLASSES = [None if label is None else ["cat", "dog"][label] for label in KNOWN]


def campaign_labels(source, **options):
    with open_campaign(source, automatic=False, **options) as campaign:
        return campaign.labels()


class Items(torch.utils.data.Dataset):
    def __init__(self, *items):
        self.items = list(zip(*items, strict=True))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        return self.items[row]


class Records(Items):
    def __init__(self, **columns):
        super().__init__(*columns.values())
        self.names = list(columns)

    def __getitem__(self, row):
        return dict(zip(self.names, self.items[row], strict=True))


def hub():
    """The library of Hugging Face, part of the test extra."""
    return pytest.importorskip("datasets")


def columns_of(kind):
    """The same table, with its labels, in a container."""
    table = {"a": NUMBERS[:, 0].tolist(), "b": NUMBERS[:, 1].tolist(), "label": CLASSES}
    if kind == "dictionary":
        return table
    return hub().Dataset.from_dict(table) if kind == "hugging face" else Records(**table)


@QUERIES
@pytest.mark.parametrize("kind", ["dictionary", "hugging face", "records"])
def test_a_table_is_the_same_in_every_container(ask, kind):
    frame = pd.DataFrame(columns_of("dictionary"))
    same, found = ask(frame), ask(columns_of(kind))
    assert found.ids.tolist() == same.ids.tolist()
    assert np.array_equal(found.scores, same.scores)
    assert any("the column 'label' holds the labels" in note and "--label" in note for note in found.notes)
    assert sorted(ask(columns_of(kind), label="none", columns=["a", "b"]).ids) != []
    assert len(campaign_labels(columns_of(kind))) == 12


@QUERIES
@pytest.mark.parametrize("kind", ["dictionary", "hugging face", "records", "pairs"])
def test_a_column_of_vectors_is_learned_from_and_its_labels_are_taken(ask, kind):
    columns = {"x": X.numpy(), "label": KNOWN, "width": [640] * 30}
    source = {
        "dictionary": lambda: columns,
        "hugging face": lambda: hub().Dataset.from_dict(columns),
        "records": lambda: Records(**columns),
        "pairs": lambda: Items(X, KNOWN),
    }[kind]()
    found, plain = ask(source), ask(X.numpy(), KNOWN)
    assert found.ids.tolist() == plain.ids.tolist()
    assert any("label" in note and "label='none'" in note for note in found.notes)
    assert kind == "pairs" or any("not used: 'width'" in note for note in found.notes)
    assert ask(source, [*["a", "b"] * 6, *[None] * 18]).ids.tolist() != []
    assert campaign_labels(source) == {row: row % 2 for row in range(12)}
    assert campaign_labels(source, label="none") == {}


def test_classes_of_a_hugging_face_dataset_have_their_names():
    datasets = hub()
    features = datasets.Features(
        {"x": datasets.List(datasets.Value("float32")), "kind": datasets.ClassLabel(2, ["u", "v"])}
    )
    data = datasets.Dataset.from_dict({"x": X.tolist(), "kind": [0, 1, -1] * 10}, features)
    assert set(campaign_labels(data).values()) == {"u", "v"}
    assert set(query(data).ids.tolist()) <= set(range(2, 30, 3))
    frame = data.remove_columns("x").add_column("a", NUMBERS[:, 0].tolist())
    assert len(campaign_labels(frame)) == 20


def test_pictures_of_a_hugging_face_dataset():
    datasets = hub()
    data = datasets.Dataset.from_dict({"image": pictures(*range(10, 40)), "label": KNOWN})
    data = data.cast_column("image", datasets.Image())
    found = query(data, size=16)
    assert set(found.ids.tolist()) <= set(range(12, 30))
    assert any("'image' is learned from" in note for note in found.notes)
    assert "the learner reads the middle square of every image, scaled to 16×16" in found.notes


def test_what_a_container_leaves_open_is_asked():
    two = {"left": X.numpy(), "right": X.numpy(), "y": KNOWN}
    with pytest.raises(InputError, match=r"columns 'left', 'right' to learn from.*columns='left', or collate="):
        query(two)
    assert query(two, columns="right").ids.tolist() == query(X.numpy(), KNOWN).ids.tolist()
    records = Records(**two)
    glued = query(records, collate=lambda item: (np.concatenate([item["left"], item["right"]]), item["y"]))
    assert glued.ids.tolist() == query(np.hstack([X.numpy()] * 2), KNOWN).ids.tolist()
    with pytest.raises(InputError, match="has no column 'middle'; its columns are left, right, y"):
        query(two, columns="middle")
    with pytest.raises(InputError, match=r"collate=.* reads the items of a data set"):
        query(NUMBERS, KNOWN, collate=lambda item: item)
    with pytest.raises(LabelError, match=r"are \(Tensor, int, int\), and which are labels is not known"):
        query(Items(X, range(30), range(30)))
    with pytest.raises(InputError, match="differ in length: 'a' has 30, 'b' has 2"):
        query({"a": NUMBERS[:, 0], "b": [1, 2]})
    with pytest.raises(InputError, match=r"the columns 'y' and 'label' of .* may both hold the labels"):
        query(two | {"label": KNOWN})


def test_one_split_of_a_hugging_face_dataset_is_read():
    datasets = hub()
    with pytest.raises(InputError, match=r"several splits .*; pass one, such as X\['train'\]"):
        query(datasets.DatasetDict(train=datasets.Dataset.from_dict({"a": [1.0, 2.0]})))
    with pytest.raises(InputError, match="read from its start alone"):
        query(datasets.Dataset.from_dict({"a": [1.0, 2.0]}).to_iterable_dataset())


def pictures(*sides):
    return [Image.fromarray(rng.integers(0, 255, (side, side, 3), dtype=np.uint8)) for side in sides]


@QUERIES
def test_a_list_of_pictures_is_read_like_a_folder_of_them(ask, tmp_path):
    some = pictures(*range(10, 40))
    for row, picture in enumerate(some):
        picture.save(tmp_path / f"{row:02}.png")
    named = {f"{row:02}.png": label for row, label in enumerate(CLASSES) if label is not None}
    of_folder, of_list = ask(tmp_path, named), ask(some, CLASSES)
    assert [int(id.removesuffix(".png")) for id in of_folder.ids.tolist()] == of_list.ids.tolist()
    with open_campaign(some, automatic=False) as campaign:
        assert Image.open(campaign.show("3").path).size == (13, 13)
        assert campaign.source.samples.features(["3"]).shape == (3, 32, 32)


class Brightness:
    """An encoder of pictures."""

    identity, kind, width = "brightness", "image", 2

    def encode(self, batch):
        return np.asarray([[picture.mean(), 1.0] for picture in batch], np.float32)


def count_letters(texts):
    return np.asarray([[text.count("a"), text.count("o")] for text in texts], np.float32)


@QUERIES
def test_texts_and_pictures_are_seen_through_an_encoder(ask):
    texts = [("cat purrs " if row % 2 else "dog sleeps ") * (row + 1) for row in range(30)]
    encoded = ask(texts, CLASSES, encoder=count_letters)
    assert any("2 numbers that the encoder of this query makes" in note for note in encoded.notes)
    plain = ask(texts, CLASSES)
    assert not any("encoder" in note for note in plain.notes)
    seen = ask(pictures(*range(10, 40)), CLASSES, encoder=Brightness())
    assert any("2 numbers that the encoder brightness makes" in note for note in seen.notes)
    with pytest.raises(InputError, match="encodes texts or photos, and the samples are neither"):
        ask(NUMBERS, KNOWN, encoder=count_letters)


def test_a_campaign_reads_pictures_through_an_encoder():
    with open_campaign(pictures(16, 20, 16), encoder=Brightness(), automatic=False) as campaign:
        assert campaign.source.samples.features(["1"]).shape == (2,)


@QUERIES
def test_missing_numbers_of_an_array_are_filled_as_those_of_a_table(ask):
    holed = NUMBERS.copy()
    holed[::5, 1] = np.nan
    found = ask(holed, KNOWN)
    table = open_pool(pd.DataFrame(holed), labelled=True).source
    filled = open_pool(holed).source
    rows = np.arange(30)
    assert np.allclose(np.sort(filled.read(rows), axis=1), np.sort(table.read(rows), axis=1))
    assert any("missing numbers (in feature 1) become the mean" in note for note in found.notes)
    with open_campaign(holed, automatic=False) as campaign:
        samples = campaign.source.samples
        assert campaign.source.size == 30
        assert np.array_equal(samples.features(list(map(str, rows))).read(rows), filled.read(rows))
        assert open_source(holed[:7], known=samples.fingerprint()).features(["0"]).shape == (4,)
    kept = ask(holed, KNOWN, model=HistGradientBoostingClassifier(min_samples_leaf=2))
    assert not any("become the mean" in note for note in kept.notes)
    piped = make_pipeline(SimpleImputer(), LogisticRegression())
    assert len(ask(holed, KNOWN, model=piped).ids) == 5
    with pytest.raises(NonFiniteInput, match="X holds nan at row 0, feature 1"):
        ask(holed, KNOWN, model=LogisticRegression())
    holed[3, 2] = np.inf
    with pytest.raises(NonFiniteInput, match="X holds inf at row 3, feature 2"):
        ask(holed, KNOWN)


@QUERIES
def test_other_samples_are_read_as_the_pool_is(ask):
    frame = pd.DataFrame({"a": NUMBERS[:, 0], "kind": ["u", "v", "w"] * 10})
    trained = ally.Loop(frame, CLASSES, model="linear", random_state=0)
    assert np.array_equal(trained.predict(frame.iloc[:4]), trained.predict(frame)[:4])
    checked = ask(frame, CLASSES, model="mlp", validation=(frame.iloc[:6], CLASSES[:6]))
    assert len(checked.ids) == 5
    texts = [("cat purrs" if row % 2 else "dog sleeps") + f" in street {row}" for row in range(30)]
    of_texts = ally.Loop(texts, CLASSES, model="linear", random_state=0)
    assert of_texts.predict(["the cat purrs", "the dog sleeps"]).tolist() == ["dog", "cat"]
