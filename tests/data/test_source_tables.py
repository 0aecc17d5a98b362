import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ally.data import open_source
from ally.errors import DataError, IdError, InputError

HOUSES = "id,rooms,colour,price,note\na,3,red,100,one\nb,,blue,120,two\nc,5,,90,three\nd,4,red,70,four\n"


def rows(n=4):
    return np.arange(n)


@pytest.fixture
def houses(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text(HOUSES)
    return path


def same_table(tmp_path, kind):
    frame = pd.DataFrame(
        {
            "id": list("abcd"),
            "rooms": [3, None, 5, 4],
            "colour": ["red", "blue", None, "red"],
            "price": [100, 120, 90, 70],
            "note": ["x"] * 4,
        }
    )
    if kind == "pandas":
        return frame
    if kind == "polars":
        return pl.from_pandas(frame)
    if kind == "arrow":
        return pl.from_pandas(frame).to_arrow()
    path = tmp_path / f"houses.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=3)
    elif kind == "jsonl":
        path.write_text(
            "".join(json.dumps({k: v for k, v in row.items() if v == v}) + "\n" for row in frame.to_dict("records"))
        )
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl", "pandas", "polars", "arrow"])
def test_every_kind_of_table_says_the_same(tmp_path, kind):
    samples = open_source(same_table(tmp_path, kind), columns=["rooms", "colour"], label="price")
    assert samples.kind.name == "table"
    found = list(samples.scan())
    assert [sample.id for sample in found] == list("abcd")
    assert [sample.label for sample in found] == [100, 120, 90, 70]
    source = samples.features(["d", "b", "a", "c"])
    assert [source.column(number) for number in range(5)] == [
        "'rooms'",
        "'rooms is missing'",
        "'colour=blue'",
        "'colour=red'",
        "'colour is missing'",
    ]
    np.testing.assert_array_equal(
        source.read(rows()), [[4, 0, 0, 1, 0], [4, 1, 1, 0, 0], [3, 0, 0, 1, 0], [5, 0, 0, 0, 1]]
    )
    assert {name: str(value) for name, value in samples.show("a").columns.items()}["colour"] == "red"
    assert "price" not in samples.show("a").columns, "what is known already is not shown"
    assert len(samples.problems) == 0
    json.dumps(samples.fingerprint())


def test_the_same_source_again_keeps_its_features(houses):
    first = open_source(houses, label="price")
    kept = json.loads(json.dumps(first.fingerprint()))
    before = first.features(list("abcd")).read(rows())
    houses.write_text(HOUSES + "e,7,green,1,five\nf,inf,red,2,six\ng,many,blue,3,seven\n")
    again = open_source(houses, known=kept)
    assert [sample.id for sample in again.scan()] == list("abcdefg")
    np.testing.assert_array_equal(again.features(list("abcd")).read(rows()), before)
    later = again.features(list("efg")).read(rows(3))
    assert later.shape[1] == before.shape[1]
    np.testing.assert_array_equal(later[:, :5], [[7, 0, 0, 0, 0], [4, 1, 0, 1, 0], [4, 1, 1, 0, 0]])
    reasons = {id: " ".join(problem.reason for problem in again.problems.of(id)) for id in "efg"}
    assert "new category 'green'" in reasons["e"]
    assert "holds inf" in reasons["f"]
    assert "holds 'many', not a number" in reasons["g"]


def test_a_table_that_changes_while_it_is_open(houses):
    samples = open_source(houses, columns=["rooms"])
    source = samples.features(list("abcd"))
    assert source.read(rows())[3, 0] == 4
    houses.write_text("id,rooms,colour,price,note\nnew,9,red,1,x\nd,44,red,70,four\nb,2,blue,1,y\nc,5,,90,three\n")
    values = source.read(rows())
    assert values[3, 0] == 44, "rows are found where they are now"
    assert samples.problems.of("a")[0].kind == "gone"
    assert samples.missing(list("abcd")) == ["a"]
    assert samples.show("new").columns["rooms"] == "9"


def test_ids_without_an_id_column_are_hashes_that_stay(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,2\n3,4\n1,2\n1,2\n")
    samples = open_source(path, label="y")
    ids = [sample.id for sample in samples.scan()]
    assert len(set(ids)) == 4
    assert ids[2:] == [f"{ids[0]}-2", f"{ids[0]}-3"]
    assert samples.problems.counts["duplicate"] == 2
    assert any("hash, hash-2" in note for note in samples.notes)
    path.write_text("y,x\n7,3\n,1\n8,9\n")
    again = [sample.id for sample in open_source(path, known=samples.fingerprint()).scan()]
    assert again[:2] == [ids[1], ids[0]], "neither the order nor a label that is filled in changes an id"
    assert again[2] not in ids


def test_the_first_unique_name_is_the_id_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,name,x\n1,a,1\n1,b,2\n")
    samples = open_source(path)
    assert [sample.id for sample in samples.scan()] == ["a", "b"]
    assert "the column 'name' holds the ids" in samples.notes


def test_quotes_newlines_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffid,text\r\n1,"two\r\nlines, and ""quotes"""\r\n\r\n2,plain\r\n'.encode())
    samples = open_source(path)
    assert samples.kind.name == "text"
    assert [sample.id for sample in samples.scan()] == ["1", "2"]
    assert samples.show("1").text == 'two\r\nlines, and "quotes"'
    assert samples.show("2").text == "plain"


def test_an_unclosed_quote_costs_one_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,x\n1,1\n2,"broken\n' + "".join(f"{number},1\n" for number in range(3, 40)))
    samples = open_source(path)
    assert len(list(samples.scan())) == 38
    (problem,) = samples.problems
    assert problem.id == "line 3"


def test_columns_may_be_said_to_be_categories(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,code\n" + "".join(f"{number},{number % 3}\n" for number in range(9)))
    assert open_source(path).features(["0"]).shape == (1,)
    assert open_source(path, columns={"code": "category"}).features(["0"]).shape == (3,)


def test_na_counts_as_a_missing_number(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"{number},{'NA' if number % 2 else number}\n" for number in range(8)))
    samples = open_source(path)
    np.testing.assert_array_equal(samples.features(["0", "1"]).read(rows(2)), [[0, 0], [3, 1]])
    assert len(samples.problems) == 0


def test_known_labels_are_read_as_labels_are_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x,label\na,1,3\nb,2,\nc,3,'3\nd,4,NA\n")
    assert [sample.label for sample in open_source(path, label="label").scan()] == [3, None, "3", "NA"]


def test_a_file_replaced_before_the_first_scan(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"id": ["a"], "x": [1]}).to_parquet(path)
    samples = open_source(path)
    pd.DataFrame({"id": list("abcdef"), "x": range(6)}).to_parquet(path, row_group_size=2)
    assert [sample.id for sample in samples.scan()] == list("abcdef")
    np.testing.assert_array_equal(samples.features(["f", "a"]).read(rows(2)), [[5], [0]])


def test_images_by_path(photos, tmp_path):
    path = photos / "list.csv"
    path.write_text("id,file\nx,cat/1.jpg\ny,../secret.jpg\nz,nope.jpg\n")
    samples = open_source(path, image="file", size=16)
    assert samples.kind.name == "images"
    assert [sample.id for sample in samples.scan()] == ["x"]
    assert samples.show("x").path == (photos / "cat/1.jpg").resolve()
    assert samples.features(["x"]).read(rows(1)).shape == (1, 3, 16, 16)
    assert {problem.id for problem in samples.problems} == {"y", "z"}
    frame = pd.DataFrame({"file": ["dog/3.jpg", "5.jpg"]})
    assert [sample.id for sample in open_source(frame, image="file", folder=photos).scan()] == ["dog/3.jpg", "5.jpg"]
    with pytest.raises(InputError, match="folder="):
        open_source(frame, image="file")


def test_imputing_with_the_mean_of_the_first_time(houses):
    kept = open_source(houses, columns=["rooms"]).fingerprint()
    assert kept["encoder"] == [{"name": "rooms", "mean": 4.0, "marked": True}]
    assert math.isclose(open_source(houses, known=kept).features(["b"]).read(rows(1))[0, 0], 4.0)


def test_unknown_ids_and_changed_sources(houses, photos):
    samples = open_source(houses)
    with pytest.raises(IdError, match="'nope'"):
        samples.show("nope")
    with pytest.raises(IdError, match="1 of 2 ids"):
        samples.features(["a", "nope"])
    kept = samples.fingerprint()
    with pytest.raises(InputError, match="is a folder of images, but the campaign was created from a table"):
        open_source(photos, known=kept)
    with pytest.raises(InputError, match="id_column='price' differs from 'id'"):
        open_source(houses, id_column="price", known=kept)
    houses.write_text("id,rooms\na,1\n")
    with pytest.raises(DataError, match="no column 'colour', which it had when the campaign was created"):
        open_source(houses, known=kept)


def test_semicolons_separate_where_the_header_has_no_comma(tmp_path):
    (tmp_path / "t.csv").write_text('id;size;note\na;1;"x, y"\nb;2;z\n')
    samples = open_source(tmp_path / "t.csv")
    assert [sample.id for sample in samples.scan()] == ["a", "b"]
    assert samples.show("a").columns == {"size": "1", "note": "x, y"}
    (tmp_path / "u.csv").write_text("id,a;b\nx,1\n")
    assert open_source(tmp_path / "u.csv").show("x").columns == {"a;b": "1"}
