"""One reader of tables: what a column is, whichever file it is in."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from ally.campaign import Campaign
from ally.data import open_pool, open_source
from ally.data.catalogue import Reading, load
from ally.data.tables import Row, open_rows
from ally.errors import DataError, InputError

N = 40
FRAME = pd.DataFrame(
    {
        "id": [f"r{n}" for n in range(N)],
        "price": [n + 0.5 for n in range(N)],
        "kind": ["ab"[n % 2] for n in range(N)],
    }
)


def write(path, kind):
    """The same table in each kind of file."""
    if kind == "semicolons and commas":
        FRAME.to_csv(path := path / "t.csv", sep=";", decimal=",", index=False)
    elif kind == "tabs":
        FRAME.to_csv(path := path / "t.csv", sep="\t", index=False)
    elif kind == "compressed":
        FRAME.to_csv(path := path / "t.csv.gz", index=False)
    elif kind == "sheet":
        FRAME.to_excel(path := path / "t.xlsx", index=False)
    elif kind == "parquet":
        FRAME.to_parquet(path := path / "t.parquet")
    elif kind == "lines":
        FRAME.to_json(path := path / "t.jsonl", orient="records", lines=True)
    elif kind == "json":
        FRAME.to_json(path := path / "t.json", orient="records")
    else:
        FRAME.to_csv(path := path / "t.csv", index=False)
    return path


KINDS = ["plain", "semicolons and commas", "tabs", "compressed", "sheet", "parquet", "lines", "json"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_is_read_alike_by_all(tmp_path, kind):
    path = write(tmp_path, kind)
    samples = open_source(path)
    ids = [sample.id for sample in samples.scan()]
    features = samples.features(ids)
    assert ids == FRAME["id"].tolist()
    assert features.names == ("price", "kind=a", "kind=b")
    np.testing.assert_allclose(features.read(np.arange(N))[:, 0], FRAME["price"])
    pool = open_pool(path)
    np.testing.assert_allclose(pool.source.read(np.arange(N))[:, 0], FRAME["price"])
    assert pool.ids.tolist() == ids
    benched = load(path, label="kind")
    assert benched.pool.shape[1] == 1
    assert set(benched.pool.ravel()) | set(benched.test.ravel()) == set(FRAME["price"])


def test_thousands_and_negative_numbers_with_commas(tmp_path):
    (tmp_path / "t.csv").write_text("id;a\nx;-1,5\ny;1.234,25\nz;7\n")
    samples = open_source(tmp_path / "t.csv", columns=["a"])
    list(samples.scan())
    assert samples.features(["x", "y", "z"]).read(np.arange(3))[:, 0].tolist() == [-1.5, 1234.25, 7.0]
    assert "numbers are written with a comma: 1,5 is read as 1.5" in samples.notes


def test_an_older_campaign_keeps_its_row_ids(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,5;x\n2,5;y\n3,5;x\n4,5;y\n")
    now = open_source(tmp_path / "t.csv")
    before = {key: value for key, value in now.fingerprint().items() if key != "decimal"}
    assert now.fingerprint()["decimal"] == ","
    then = open_source(tmp_path / "t.csv", known=before)
    assert {sample.id for sample in then.scan()} != {sample.id for sample in now.scan()}
    again = open_source(tmp_path / "t.csv", known=now.fingerprint())
    assert [sample.id for sample in again.scan()] == [sample.id for sample in now.scan()]


def test_a_file_without_a_header(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", header=False, index=False)
    samples = open_source(tmp_path / "t.csv", header=False, id_column="column 1")
    assert [sample.id for sample in samples.scan()] == FRAME["id"].tolist()
    assert samples.features(["r0"]).names[0] == "column 2"


def test_columns_that_look_like_the_answer_are_no_features(tmp_path):
    for name in ("label", "Target", "class", "y"):
        table = FRAME.assign(**{name: ["x" if n < 10 else None for n in range(N)]})
        samples = open_source(table)
        found = list(samples.scan())
        assert samples.features(["r0"]).names == ("price", "kind=a", "kind=b")
        assert [sample.label for sample in found[8:12]] == ["x", "x", None, None]
        assert any(f"the column {name!r} holds the labels, by its name" in note for note in samples.notes)
        plain = open_source(table, label="none")
        assert f"{name}=x" in plain.features(["r0"]).names
    with pytest.raises(InputError, match="the columns 'label' and 'target' are both named like labels"):
        open_source(FRAME.assign(label="x", target="y"))
    with pytest.raises(
        InputError, match=r"the column 'outcome' looks like the label; pass label='outcome' \(--label\)"
    ):
        open_source(FRAME.assign(outcome="x"))
    assert open_source(FRAME.assign(outcome="x"), columns=["price", "outcome"])


def test_long_texts_and_ids_are_recognised(tmp_path):
    body = [f"the {'cat purrs' if n % 2 else 'dog barks'} in street {n} and nobody listens to it" for n in range(N)]
    table = pd.DataFrame(
        {"article_id": range(7, N + 7), "date": [f"2024-01-{n % 12 + 1:02}" for n in range(N)], "body": body}
    )
    samples = open_source(table)
    assert samples.kind.name == "text"
    assert next(iter(samples.scan())).id == "7"
    assert any("the column 'body' holds the texts to label" in note for note in samples.notes)
    two = open_source(table.assign(summary=[text[:50] for text in body]))
    assert any("'summary' could be used too: choose with --text" in note for note in two.notes)
    numbers = open_source(table.assign(a=1.5, b=2.5, c=list(range(N))))
    assert numbers.kind.name == "table"
    assert any("'body' holds texts and is not learned from" in note for note in numbers.notes)
    assert open_source(table, columns=["date"]).kind.name == "table"


def test_what_is_read_of_each_column(tmp_path):
    table = FRAME.assign(label="x", note=[f"n{n}" for n in range(N)], gap=[None, *range(1, N)])
    samples = open_source(table)
    samples.fingerprint()
    assert samples.columns() == {
        "id": "the ids",
        "price": "number",
        "kind": "category of 2: a, b",
        "label": "labels",
        "note": "left out: it has 40 different texts in 40 rows, and at most 20 can be categories",
        "gap": "number; 1 missing become the mean 20, marked in a further feature",
    }


def test_lists_series_and_indices_are_sources():
    assert [s.id for s in open_source(FRAME.drop(columns="id").set_index(FRAME["id"])).scan()] == FRAME["id"].tolist()
    assert open_source(FRAME.to_dict("records")).features(["r0"]).names == ("price", "kind=a", "kind=b")
    texts = open_source(pd.Series(["a b", "b c", "c d"], index=["u", "v", "w"]))
    assert (texts.kind.name, [sample.id for sample in texts.scan()]) == ("text", ["u", "v", "w"])
    assert open_source(["a b", "b c", "c d"]).kind.name == "text"
    assert open_source([[1.0, 2.0], [3.0, 4.0]]).features(["1"]).read(np.arange(1)).tolist() == [[3.0, 4.0]]


def test_a_file_that_is_not_a_workbook_is_refused(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        open_source(tmp_path / "t.xlsx")
    (tmp_path / "t.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(DataError, match="holds no list of objects"):
        open_source(tmp_path / "t.json")


def mostly_empty(path, filled=10):
    FRAME.assign(area=FRAME["price"].where(FRAME.index < filled)).to_csv(path, index=False)
    return path


def test_a_mostly_empty_column_is_not_learned_from_unasked(tmp_path):
    path = mostly_empty(tmp_path / "t.csv")
    told = r"'area' looks like the label: it is filled in 10 of 40 rows, .*label='area' \(--label\), .*\(--column\)"
    with pytest.raises(InputError, match=told):
        open_pool(path)
    with pytest.raises(InputError, match=told):
        open_source(path).fingerprint()
    with pytest.raises(InputError, match=told):
        open_pool(pd.read_csv(path))
    assert len(open_source(path, label="area").features(["r0"]).names) == 3
    assert open_source(path, label="none").features(["r0"]).names[-1] == "area is missing"
    assert open_source(path, columns=["price", "area"]).features(["r0"]).names[-1] == "area is missing"
    assert open_pool(path, labelled=True).names[-1] == "area is missing", "the labels are elsewhere"
    assert open_pool(pd.read_csv(path), labelled=True).source.shape == (5,)


@pytest.mark.parametrize("frame", [FRAME.iloc[:6], FRAME.assign(price=FRAME["price"].where(FRAME.index < 12))])
def test_few_rows_and_several_gaps_tell_nothing_of_the_answer(tmp_path, frame):
    frame.assign(area=frame["price"].where(frame.index < 2)).to_csv(tmp_path / "t.csv", index=False)
    assert open_pool(tmp_path / "t.csv").names[-1] == "area is missing"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("r0,0.5,a\nr1,1.5,b\nr2,2.5,c", "'0.5' would be the name of a column of numbers"),
        ("r0,3,a\nr1,4,b\nr2,5,a", "'a' is also a value of its column"),
        ("34,1200\n35,1100\n36,900", "'34' would be the name of a column of numbers"),
        ("5,9,2\n5.5,8,1\n4,1,7", "'5' would be the name of a column of numbers"),
        ("0,1,2\n0.5,1,2\n1.5,1,2", None),
        ("plot,2000,2010,2020\np,0.5,1,2\nq,1.5,1,2", None),
        ("size,2020\n0.5,1\n1.5,2", None),
        ("id,kind\nr0,a\nid,kind\nr1,b", None),
    ],
)
def test_a_first_line_that_looks_like_data_is_said(tmp_path, lines, said):
    path = tmp_path / "t.csv"
    path.write_text(lines + "\n")
    found = [note for note in open_source(path, label="none").notes if "--no-header" in note]
    assert (said is None) == (not found)
    assert all(said in note for note in found)
    assert not [note for note in open_source(path, header=False).notes if "--no-header" in note]


def test_a_sheet_without_a_header_is_said(tmp_path):
    FRAME.to_excel(tmp_path / "t.xlsx", index=False, header=False)
    assert any("--no-header" in note for note in open_source(tmp_path / "t.xlsx").notes)


def test_a_benchmark_takes_a_mark_for_no_label(tmp_path):
    FRAME.assign(label=[n % 2 if n < 30 else -1 for n in range(N)]).to_csv(tmp_path / "t.csv", index=False)
    plain = load(str(tmp_path / "t.csv"))
    assert any("10 of 40 labels are -1" in note for note in plain.notes)
    found = load(str(tmp_path / "t.csv"), reading=Reading(missing_label="-1"))
    assert set(found.pool_labels.tolist()) == {0, 1}
    assert "10 samples have no label and are left out" in found.notes


@pytest.mark.parametrize(
    ("column", "values"),
    [("Department", ["billing", "sales", "support"]), ("stars", [1, 2, 3]), ("hours", [0.5, 1.25, 7.75])],
)
@pytest.mark.parametrize("named", [{}, {"text": "body"}])
def test_labels_beside_texts_are_not_dropped_unasked(tmp_path, column, values, named):
    texts = [f"a ticket about the matter number {row} that is long enough to be read as a text" for row in range(200)]
    frame = pd.DataFrame({"body": texts, "sender": ["me", "you"] * 100})
    frame[column] = [values[row % 3] if row % 7 == 0 else None for row in range(200)]
    path = tmp_path / "tickets.csv"
    frame.to_csv(path, index=False)
    told = rf"the column '{column}' is filled in 29 of 200 rows.*label='{column}' \(--label\).*'none'"
    for place in (path, frame):
        with pytest.raises(InputError, match=told):
            list(open_source(place, **named).scan())
    with pytest.raises(InputError, match=told):
        Campaign.create("memory", path, **named)
    with pytest.raises(InputError, match=told):
        open_pool(frame)
    assert open_pool(frame, labelled=True).labels is None
    assert len(open_pool(path, labelled=True, **named).source) == 200
    assert len(list(open_source(path, label="none", **named).scan())) == 200
    given = [sample.label for sample in open_source(path, label=column, **named).scan()]
    assert sum(label is not None for label in given) == 29


def test_columns_beside_texts_that_hold_no_labels_are_not_asked_about(tmp_path):
    texts = [f"a ticket about the matter number {row} that is long enough to be read as a text" for row in range(60)]
    frame = pd.DataFrame({"body": texts, "full": ["me", "you"] * 30})
    frame["note"] = [f"note {row}" if row % 4 == 0 else None for row in range(60)]
    frame["parent_id"] = [1 if row % 4 == 0 else None for row in range(60)]
    frame["empty"] = None
    frame["one"] = ["x" if row < 20 else None for row in range(60)]
    assert len(list(open_source(frame).scan())) == 60


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_every_row_is_named_by_its_own_line_and_found_again(tmp_path, name):
    content = b'\xef\xbb\xbfid,x\na,"one\ntwo"\n\nb\nc,"never closed\nd,4\n'
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    rows = open_rows(tmp_path / name)
    scanned = list(rows.scan())
    assert [(row.name, isinstance(row, Row)) for row in scanned] == [
        ("line 2", True),
        ("line 5", False),
        ("line 6", False),
        ("line 7", True),
    ]
    good = [row for row in scanned[::-1] if isinstance(row, Row)]
    assert rows.at([row.position for row in good]) == [row.values for row in good]
    assert rows.at([10**6]) == ["the file is shorter than before"]
