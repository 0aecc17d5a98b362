"""Odd labels, ids and columns: read right, or refused with what to do, alike by a query and a campaign."""

import numpy as np
import pandas as pd
import pytest

import ally
from ally.errors import DataError, IdError, InputError, LabelError

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=40), "b": RNG.normal(size=40)})


def query(source, y=None, **options):
    loop = ally.Loop(source, y, model="linear", random_state=0, **options)
    loop.ask(3)
    return loop.known_labels()


def campaign(source, **options):
    with ally.Campaign.create("memory", source, automatic=False, **options) as made:
        return set(made.status().classes)


def labelled(first, second, path=None):
    frame = FRAME.assign(label=[first(row) if row < 10 else second(row) if row < 20 else None for row in range(40)])
    if path is None:
        return frame
    frame.to_csv(path, index=False)
    return path


DOORS = pytest.mark.parametrize("door", [query, campaign])


@DOORS
@pytest.mark.parametrize("of_file", [False, True])
def test_labels_whose_type_changes_half_way_are_texts(tmp_path, door, of_file):
    path = tmp_path / "t.csv" if of_file else None
    assert door(labelled(lambda row: 1 + row % 2, lambda row: "cat", path)) == {"1", "2", "cat"}
    told = "the labels are numbers, and 10 of them 'NA'; if that marks samples without a label say missing_label='NA'"
    odd = labelled(lambda row: 0.5 * row, lambda row: "NA", path)
    with pytest.raises(LabelError, match=told):
        door(odd)
    assert len(door(odd, task="classification")) == 11


@DOORS
def test_a_class_may_be_named_nan(tmp_path, door):
    for path in (None, tmp_path / "t.csv"):
        assert door(labelled(lambda row: "dog", lambda row: "nan", path)) == {"dog", "nan"}


def test_labels_of_two_types_beside_the_samples_are_refused():
    with pytest.raises(LabelError, match="y mixes int and str; use one type"):
        query(FRAME, [1] * 10 + ["cat"] * 10 + [None] * 20)


@DOORS
def test_ten_thousand_labels_that_never_repeat_are_no_classes(door):
    many = pd.DataFrame({"a": RNG.normal(size=12_000)})
    names = [f"c{row}" if row < 10_000 else None for row in range(12_000)]
    with pytest.raises(LabelError, match="10000 different texts in 10000 labels, such as 'c0': ids or free texts"):
        door(many.assign(label=names))


def test_an_index_that_repeats_is_no_ids():
    twice = FRAME.set_axis([0, 1, 2, 3] * 10)
    for X in (twice, twice["a"].to_frame(), twice.assign(kind="u")):
        with pytest.raises(IdError, match=r"the index of X repeats 0.*X\.reset_index\(drop=True\)"):
            query(X)
    assert query(twice, ids=range(40)) == set()
    with ally.Campaign.create("memory", twice) as made:
        assert made.source.samples.features([]).shape == (2,), "the index is no feature"
    with pytest.raises(IdError, match="the id '0' has more than one embedding"):
        ally.Campaign.create("memory", FRAME.set_axis([f"s{row}" for row in range(40)]), embeddings=twice)


def test_vectors_in_a_frame_are_brought_together_by_the_index():
    names = [f"s{row}" for row in range(40)]
    vectors = pd.DataFrame(RNG.normal(size=(40, 3)), index=names)
    for given in (vectors.iloc[::-1], vectors.rename_axis("id").reset_index()):
        with ally.Campaign.create("memory", FRAME.set_axis(names), embeddings=given) as made:
            seen = made.source.samples.features(["s7", "s3"]).read(np.arange(2))
            assert np.allclose(seen, vectors.loc[["s7", "s3"]])
    with ally.Campaign.create("memory", FRAME, embeddings=vectors.reset_index(drop=True)) as made:
        assert made.source.samples.features([]).shape == (3,)


def test_a_slice_of_a_frame_keeps_its_numbers():
    part = FRAME.iloc[10:30]
    assert set(ally.query(part, n=20, strategy="random", model="linear").ids.tolist()) == set(range(10, 30))
    with ally.Campaign.create("memory", part) as made:
        assert set(made.ask(3).ids) <= set(range(10, 30))


def test_a_column_that_disappears_is_named(tmp_path):
    path = labelled(lambda row: "dog", lambda row: "cat", tmp_path / "t.csv")
    with ally.Campaign.create("memory", path, automatic=False) as made:
        FRAME[["a"]].to_csv(path, index=False)
        with pytest.raises(DataError, match="has no column 'b', which it had when the campaign was created"):
            made.source.rescan()
        assert len(made.labels()) == 20
    loop = ally.Loop(FRAME, [row % 2 if row < 10 else None for row in range(40)], model="linear", random_state=0)
    with pytest.raises(InputError, match=r"shape \(1,\) and the model takes \(2,\)"):
        loop.predict(FRAME[["a"]])


def test_how_data_are_read_is_said_by_known_names():
    with pytest.raises(InputError, match="lable= is not known; how data are read is said by kind, id_column, text"):
        query(FRAME, lable="b")


def test_classes_by_the_thousand_are_refused_before_anything_is_trained():
    names = [f"c{row % 5001}" if row < 10_002 else None for row in range(10_010)]
    with pytest.raises(LabelError, match="there are 5001 classes, such as 'c0', and at most 5000 can be learned"):
        ally.query(np.zeros((10_010, 1)), names, n=2)
    with pytest.raises(LabelError, match="there are 5001 classes"):
        ally.query(np.zeros((20, 1)), n=2, classes=[f"c{row}" for row in range(5001)])
