"""Labels that come with a source: taken, refused, or asked about; never silently something else."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import ally
import ally.data.catalogue
from ally.data import open_pool
from ally.errors import DataError, InputError, LabelError, ModelError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
KNOWN = [int(row[0] > 0) if number < 12 else None for number, row in enumerate(X)]
QUERY = {"n": 2, "strategy": "random", "model": "linear", "random_state": 0}


def table(path, labels):
    pd.DataFrame({"id": range(30), "a": X[:, 0], "b": X[:, 1], "label": labels}).to_csv(path, index=False)
    return path


def test_several_labels_in_one_cell_are_refused(tmp_path):
    path = table(tmp_path / "t.csv", ["x;y" if n % 3 == 0 else "xy"[n % 2] for n in range(30)])
    with pytest.raises(LabelError, match=r"'x;y' of .* joins several classes, and a sample has one label here"):
        ally.Campaign.create("memory", path)
    with pytest.raises(LabelError, match="joins several classes"):
        open_pool(path)
    with pytest.raises(LabelError, match="joins several classes"):
        ally.data.catalogue.load(path)
    with ally.Campaign.create("memory", path, classes=["x", "y", "x;y"]) as campaign:
        assert campaign.status().given == 30


def test_minus_one_is_noted_and_can_mark_what_is_not_labelled(tmp_path):
    path = table(tmp_path / "t.csv", [-1 if label is None else label for label in KNOWN])
    with ally.Campaign.create("memory", path, automatic=False) as campaign:
        assert campaign.status().given == 30
        assert any("18 of 30 labels are -1" in note and "--missing-label" in note for note in campaign.status().notes)
    with ally.Campaign.create("memory", path, missing_label=-1, automatic=False) as campaign:
        assert campaign.status().given == 12
        assert not campaign.status().notes
    assert sum(label is not None for label in open_pool(path, missing_label="-1").labels) == 12


def test_the_labels_of_an_npz_file_are_taken(tmp_path):
    y = np.asarray([np.nan if label is None else label for label in KNOWN])
    np.savez(tmp_path / "t.npz", X=X, y=y)
    with ally.Campaign.create("memory", tmp_path / "t.npz", automatic=False) as campaign:
        assert (campaign.status().given, set(campaign.status().classes)) == (12, {"0", "1"})
    pool = open_pool(tmp_path / "t.npz")
    assert pool.labels == KNOWN
    assert pool.notes == (f"the array y of {tmp_path / 't.npz'} holds the labels (label='none', --label none if not)",)
    assert not open_pool(tmp_path / "t.npz", label="none").labels
    with pytest.raises(InputError, match="text= does not apply to an array"):
        open_pool(tmp_path / "t.npz", text="a")
    np.savez(tmp_path / "two.npz", X=X, y=np.zeros((30, 2)))
    with pytest.raises(DataError, match="several labels of a sample are not supported"):
        open_pool(tmp_path / "two.npz")


def test_query_says_that_a_mark_is_a_class():
    some = ["" if label is None and n % 2 else None if label is None else "ab"[label] for n, label in enumerate(KNOWN)]
    assert any("'' is a class like the others" in note for note in ally.query(X, some, **QUERY).notes)
    partly = [-1 if n == 20 else np.nan if label is None else label for n, label in enumerate(KNOWN)]
    assert any("pass missing_label=-1" in note for note in ally.query(X, partly, **QUERY).notes)
    signs = [None if label is None else 2 * label - 1 for label in KNOWN]
    assert not any("missing_label" in note for note in ally.query(X, signs, **QUERY).notes)


def test_a_column_named_like_the_answer_is_never_a_feature_of_a_query():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "target": pd.Series(KNOWN, dtype="float64")})
    told = ally.query(frame, **QUERY)
    assert set(told.ids.tolist()) <= set(range(12, 30))
    assert any("'target' holds the labels" in note for note in told.notes)
    whole = frame.assign(target=range(30))
    leaky, clean = (ally.query(one, KNOWN, **QUERY | {"strategy": "margin"}) for one in (whole, frame[["a", "b"]]))
    assert leaky.ids.tolist() == clean.ids.tolist()


def test_ids_of_a_query_are_what_the_notes_say(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}).to_csv(path, index=False)
    pool = open_pool(path)
    assert pool.ids is None
    assert "ids are row numbers, from 0 on" in pool.notes
    assert not any("hashes" in note for note in pool.notes)


@pytest.mark.parametrize(
    "use",
    [
        lambda: ally.query(X, KNOWN, **QUERY | {"model": LogisticRegression}),
        lambda: ally.Campaign.create("memory", X, model=LogisticRegression),
    ],
    ids=["query", "campaign"],
)
def test_the_class_of_an_estimator_is_named(use):
    with pytest.raises(ModelError, match=r"the class LogisticRegression; pass an instance, LogisticRegression\(\)"):
        use()
