"""Ids come back as they went in, at every door, and the store keeps them as texts."""

import warnings

import numpy as np
import pandas as pd
import pytest

import ally
from ally.errors import AnswerError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
TRUTH = np.where(X[:, 0] > 0, "yes", "no")
LEARNER = {"model": "linear", "random_state": 0}


def create(source, **options):
    return ally.Campaign.create("memory", source, automatic=False, evaluate=0, **options)


def numbered_frame(tmp_path):
    return pd.DataFrame(X, columns=list("abc"), index=range(100, 130))


def table_with_ids(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc")).assign(id=range(100, 130))
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    ("make", "first"),
    [(lambda tmp_path: X, 0), (numbered_frame, 100), (table_with_ids, 100)],
    ids=["array", "frame", "file"],
)
def test_the_truth_is_read_by_the_ids_of_both_doors(tmp_path, make, first):
    source = make(tmp_path)
    truth = pd.Series(TRUTH, index=range(first, first + 30))
    q = ally.query(source, n=4, strategy="random", **LEARNER)
    assert truth[q.ids].tolist() == TRUTH[np.asarray(q.ids) - first].tolist()
    with create(source) as campaign:
        asked = campaign.ask(4)
        assert truth[asked.ids].tolist() == TRUTH[np.asarray(asked.ids) - first].tolist()
        one, two, three, four = asked.ids
        told = campaign.tell(asked, {one: truth[one], str(two): truth[two]})
        assert (told.labelled, set(told.waiting)) == (2, {three, four})
        campaign.tell(asked.id, {np.int64(three): truth[three], float(four): truth[four]})
        assert campaign.labels() == truth[asked.ids].to_dict()
        assert campaign.query(asked.id).ids == asked.ids
        campaign.import_labels(truth)
        assert campaign.labels() == truth.to_dict()
        assert {answer.id for answer in campaign.answers.current()} == set(map(str, truth.index))
        assert asked.to_json()["samples"][0]["id"] == str(asked.ids[0])
        assert campaign.undo(annotator="import").id in truth.index
        assert campaign.show(one).columns == campaign.show(str(one)).columns
        campaign.retrain()
        assert set(campaign.predict(source)["id"]) <= set(truth.index)
        with pytest.raises(AnswerError, match=f"the id {one} is answered as a number and as a text"):
            campaign.relabel({one: "yes", str(one): "no"})


@pytest.mark.parametrize("ids", [[f"s{n}" for n in range(30)], [f"{n:03}" for n in range(30)]])
def test_other_ids_stay_texts(ids):
    with create(X, ids=ids) as campaign:
        assert set(campaign.ask(4).ids) <= set(ids)


@pytest.mark.parametrize("form", ["pairs", "dictionary", "series", "frame", "indexed frame"])
def test_labels_are_imported_by_number(form):
    labels = pd.Series(TRUTH[:5], index=range(5), name="label")
    given = {
        "pairs": list(labels.items()),
        "dictionary": labels.to_dict(),
        "series": labels,
        "frame": labels.rename_axis("id").reset_index(),
        "indexed frame": labels.to_frame(),
    }[form]
    with create(X) as campaign:
        campaign.import_labels(given)
        assert campaign.labels() == labels.to_dict()


def test_the_id_of_a_query_is_a_number_at_both_doors():
    loop = ally.Loop(X, ids=range(100, 130), **LEARNER)
    q = loop.ask(3)
    with create(X) as campaign:
        assert type(q.id) is type(campaign.ask(2).id) is int
    one, two, three = q.ids.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop.tell(q, {one: "yes"})
        loop.tell(q.id, {str(two): "no"})
    with pytest.warns(DeprecationWarning, match="ids of queries are numbers: 1, not 'q1'"):
        assert loop.tell("q1", {three: "no"}).waiting == ()
    with pytest.raises(AnswerError, match="query 7 was never asked; queries so far: 1 to 1"):
        loop.tell(7, {})
