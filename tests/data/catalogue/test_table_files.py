import gzip

import numpy as np
import pandas as pd
import pytest

from ally.data.catalogue import Reading, load
from ally.data.catalogue.splits import holdout
from ally.data.text import WordWeights
from ally.errors import DataError, InputError, LabelError


@pytest.fixture
def table():
    """50 rows: a number, a number with gaps, a colour with gaps, a flag, a name per row, a class."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=50),
            "age": rng.integers(20, 60, 50).astype(float),
            "colour": rng.choice(["red", "green", "blue"], 50),
            "flag": rng.integers(0, 2, 50).astype(bool),
            "name": [f"person {k}" for k in range(50)],
            "kind": np.where(np.arange(50) % 2, "cat", "dog"),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::9, "colour"] = None
    return frame


def by_hand(frame):
    """The same features, column by column, from the pool's rows alone; the name column is left out."""
    pool, test = holdout(len(frame), frame["kind"].to_numpy())
    middle = float(frame["age"].iloc[pool].dropna().mean())
    known = sorted(frame["colour"].iloc[pool].dropna().unique())
    columns = [frame["size"], frame["age"].fillna(middle), frame["age"].isna()]
    columns += [frame["colour"] == colour for colour in known] + [frame["colour"].isna(), ~frame["flag"], frame["flag"]]
    X = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    return X[pool], X[test]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet"])
def test_every_kind_of_table(tmp_path, table, ending):
    path = tmp_path / f"pets.{ending}"
    if ending == "parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    data = load(str(path), label="kind")
    pool, test = by_hand(table)
    assert (data.name, data.task, data.kind) == (str(path), "classification", "table")
    np.testing.assert_allclose(data.pool, pool)
    np.testing.assert_allclose(data.test, test)
    assert set(data.pool_labels) == {"cat", "dog"}
    assert np.isfinite(data.pool).all()


def test_whole_numbers_are_targets_if_the_task_is_regression(tmp_path):
    path = tmp_path / "rooms.csv"
    pd.DataFrame({"area": np.arange(40.0), "rooms": np.arange(40) % 5}).to_csv(path, index=False)
    assert load(path, label="rooms").task == "classification"
    quantity = load(path, label="rooms", task="regression")
    assert quantity.task == "regression"
    assert quantity.pool_labels.dtype == np.float64
    many = tmp_path / "many.csv"
    pd.DataFrame({"area": np.arange(400.0), "street": np.arange(400) % 130}).to_csv(many, index=False)
    assert load(many, label="street").task == "regression"
    assert load(many, label="street", task="classification").task == "classification"


def test_text_targets_are_refused_for_regression(tmp_path, table):
    table.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(LabelError, match="the label of 'person 0' is 'dog'; regression needs a finite number"):
        load(tmp_path / "a.csv", label="kind", task="regression")


def test_row_numbers_are_no_feature(tmp_path, table):
    table.to_csv(tmp_path / "a.csv")
    table.to_csv(tmp_path / "b.csv", index=False)
    numbered, plain = (load(tmp_path / name, label="kind") for name in ("a.csv", "b.csv"))
    np.testing.assert_array_equal(numbered.pool, plain.pool)
    assert "the column 'column 1' numbers the rows and is left out" in numbered.notes


def test_a_column_of_many_texts_is_left_out_and_noted(tmp_path, table):
    big = pd.concat([table] * 4, ignore_index=True)
    big["person"] = [f"person {k}" for k in range(200)]
    big["name"] = [f"name {k}" for k in range(200)]
    big.to_csv(tmp_path / "a.csv", index=False)
    data = load(str(tmp_path / "a.csv"), label="kind")
    assert any(
        note.startswith("column 'person': left out: it has more than 100 different texts in 160 rows")
        for note in data.notes
    )
    assert "the column 'name' holds the ids" in data.notes
    assert any(note.startswith("column 'age': number; ") and "missing become the mean" in note for note in data.notes)


def test_a_category_only_the_test_set_has_is_all_zeros(tmp_path):
    pool, test = holdout(20)
    colour = np.full(20, "red", dtype=object)
    colour[pool[:5]] = "blue"
    colour[test[0]] = "violet"
    y = np.linspace(0, 1, 20) + 0.01
    pd.DataFrame({"colour": colour, "gap": np.where(np.arange(20) == test[1], np.nan, 3.0), "y": y}).to_csv(
        tmp_path / "a.csv", index=False
    )
    data = load(str(tmp_path / "a.csv"), label="y")
    assert data.task == "regression"
    assert data.pool.shape[1] == 3  # blue, red, gap: a gap in the test set alone needs no column
    assert data.test[0].tolist() == [0, 0, 3]
    assert data.test[1].tolist() == [0, 1, 3]
    assert data.test_labels.dtype == np.float64


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"] * 10, "classification"),
        ([True, False] * 10, "classification"),
        ([0, 1] * 10, "classification"),
        ([1.0, 2.0] * 10, "classification"),
        ([0.5, 1.0] * 10, "regression"),
        (list(range(200)), "regression"),
    ],
)
def test_the_task_is_decided_and_said(tmp_path, values, task):
    pd.DataFrame({"x": np.arange(len(values)) % 7, "y": values}).to_csv(tmp_path / "a.csv", index=False)
    data = load(str(tmp_path / "a.csv"), label="y")
    assert data.task == task
    assert data.notes[0].startswith(f"task: {task}")


def test_rows_without_a_label_are_left_out(tmp_path):
    pd.DataFrame({"x": np.arange(20), "y": ["a", "b", None, "a"] * 5}).to_csv(tmp_path / "a.csv", index=False)
    data = load(str(tmp_path / "a.csv"), label="y")
    assert len(data.pool) + len(data.test) == 15
    assert "5 samples have no label and are left out" in data.notes


@pytest.mark.parametrize(
    ("text", "target", "error", "message"),
    [
        ("x,w\n1,2\n", None, InputError, r"say which column holds them \(label, --label\); its columns are x, w"),
        ("x,y\n1,2\n", "z", InputError, "no column 'z' .*; its columns are x, y"),
        ("x,y\n1,a\n", "y", DataError, "every label of .* is a"),
        ("x,y\n1,a\n2,b\n", "y", DataError, "too few for a test set"),
        ("y\n" + "a\nb\n" * 9, "y", DataError, "has no usable feature column"),
        ("x,y\n" + "1,a\n" * 9, "y", DataError, "every label of .* is a; a benchmark needs at least two"),
        ("x,y\n" + "1,inf\n2,1.5\n" * 9, "y", LabelError, "the labels are numbers, and 9 of them 'inf'"),
        ("", "y", DataError, "is empty; give a file with samples"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, target, error, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(error, match=message):
        load(str(tmp_path / "a.csv"), label=target)


def test_damaged_files(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n")[:-9])
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    for name, told in (("a.csv.gz", "is damaged"), ("a.parquet", "cannot be read as Parquet")):
        with pytest.raises(DataError, match=told):
            load(str(tmp_path / name), label="y")


def test_arrays(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    np.savez(tmp_path / "a.npz", X=X, y=y)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    first, second = load(str(tmp_path / "a.npz")), load(str(tmp_path / "X.npy"), label=str(tmp_path / "y.npy"))
    pool, test = holdout(30, y)
    for data in (first, second, load(str(tmp_path / "X.npy"), label="y.npy")):
        np.testing.assert_array_equal(data.pool, X[pool])
        np.testing.assert_array_equal(data.test_labels, y[test])
        assert (data.task, data.kind) == ("classification", "table")
    np.savez(tmp_path / "images.npz", X=np.zeros((30, 3, 8, 8), np.uint8), y=rng.normal(size=(30, 1)))
    data = load(str(tmp_path / "images.npz"))
    assert (data.task, data.kind, data.pool.shape[1:]) == ("regression", "images", (3, 8, 8))


def test_arrays_that_cannot_be_used(tmp_path):
    np.savez(tmp_path / "a.npz", A=np.zeros(3))
    with pytest.raises(DataError, match="holds A; save the features as X"):
        load(str(tmp_path / "a.npz"))
    np.savez(tmp_path / "b.npz", X=np.zeros((3, 2)), y=np.zeros(4))
    with pytest.raises(DataError, match=r"y of .* has shape \(4,\) and X has 3 rows"):
        load(str(tmp_path / "b.npz"))
    np.save(tmp_path / "o.npy", np.asarray([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="without objects"):
        load(str(tmp_path / "o.npy"), label=str(tmp_path / "o.npy"))
    np.save(tmp_path / "X.npy", np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"give a second \.npy file"):
        load(str(tmp_path / "X.npy"))
    with pytest.raises(InputError, match="is not a file"):
        load(str(tmp_path / "o.npy"), label="nowhere.npy")
    with pytest.raises(InputError, match="label= does not apply to an array"):
        load(str(tmp_path / "b.npz"), label="label")
    np.savez(tmp_path / "c.npz", X=np.asarray([["a"], ["b"]]), y=np.zeros(2))
    with pytest.raises(InputError, match="features must be numbers"):
        load(str(tmp_path / "c.npz"))


def test_a_few_odd_cells_do_not_cost_a_column_of_numbers(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=300), "y": rng.normal(size=300)})
    clean = tmp_path / "clean.csv"
    frame.assign(size=frame["size"].where(~frame.index.isin([4, 9]))).to_csv(clean, index=False)
    odd = frame.astype({"size": str})
    odd.loc[[4, 9], "size"] = ["?", "about 3"]
    odd.to_csv(tmp_path / "odd.csv", index=False)
    wanted, found = load(clean, label="y"), load(tmp_path / "odd.csv", label="y")
    np.testing.assert_allclose(found.pool, wanted.pool)
    np.testing.assert_allclose(found.test, wanted.test)
    assert "column 'size' holds numbers and also 'about 3': 1 values count as missing" in found.notes


def test_flags_with_gaps_and_texts_with_some_numbers_stay_categories(tmp_path):
    frame = pd.DataFrame(
        {"flag": [True, False, None, True] * 10, "floor": ["1", "2", "roof", "cellar"] * 10, "y": np.arange(40) / 3}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert load(tmp_path / "a.csv", label="y").pool.shape[1] == 7


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_semicolons_between_columns(tmp_path, table, ending, decimal):
    table.to_csv(tmp_path / f"a.{ending}", index=False, sep=";", decimal=decimal)
    pool, test = by_hand(table)
    data = load(tmp_path / f"a.{ending}", label="kind")
    np.testing.assert_allclose(data.pool, pool)
    np.testing.assert_allclose(data.test, test)


def test_decimal_commas_beside_a_cell_that_is_no_number(tmp_path):
    numbers = [f"{row},{row % 7}5" for row in range(60)]
    rows = [f"{'?' if row == 5 else numbers[row]};{row % 3},5;{row},25" for row in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["a;b;y", *rows]) + "\n")
    data = load(tmp_path / "a.csv", label="y", task="regression")
    assert any(note.startswith("column 'a': number; 1 missing become the mean") for note in data.notes)
    found = [*data.pool[:, 0].tolist(), *data.test[:, 0].tolist()]
    missing = {float(text.replace(",", ".")) for text in numbers} - set(found)
    assert missing <= {5.55}, "numbers with a comma were not read"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,a,y\n" + "1,2,x\n3,4,z\n" * 9, "has the column 'a' more than once"),
        ("a;b;b\n" + "1;2;x\n3;4;z\n" * 9, "has the column 'b' more than once"),
        ("x,y\n" + "1,3.5\n2,3.5\n" * 9, r"every label of .* is 3\.5"),
    ],
)
def test_tables_with_repeated_columns_or_one_target_are_refused(tmp_path, text, told):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=told):
        load(tmp_path / "a.csv", label="y")


def test_numbers_taken_as_classes_are_counted(tmp_path):
    pd.DataFrame({"x": np.arange(40), "y": np.arange(40) / 7}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(
        DataError,
        match=r"40 labelled samples of 40 classes, too few .*; label more, or say that the task is regression",
    ):
        load(tmp_path / "a.csv", label="y", task="classification")


def test_the_cell_that_is_no_number_is_named(tmp_path):
    frame = pd.DataFrame({"x": np.arange(40), "y": [*np.arange(39) / 7, "many"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(LabelError, match="'many'"):
        load(tmp_path / "a.csv", label="y", task="regression")
    frame.replace("many", "?").to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(LabelError, match=r"missing_label='\?'"):
        load(tmp_path / "a.csv")
    assert (
        "1 samples have no label and are left out" in load(tmp_path / "a.csv", reading=Reading(missing_label="?")).notes
    )


def news(folder, n=40):
    """Texts with an id, a date and a label, as news.csv; two texts of the pool share a word that no test text has."""
    rows = [
        f"n{k},2026-01-{k % 12 + 1:02},the {'cat purrs' if k % 2 else 'dog barks'} in street {k} of our town today"
        for k in range(n)
    ]
    labels = ["pets" if k % 3 else "streets" for k in range(n)]
    lines = [f"{row},{label}" for row, label in zip(rows, labels, strict=True)]
    (folder / "news.csv").write_text("\n".join(["article_id,date,body,label", *lines]))
    return labels


def test_texts_of_a_file_are_learned_from_the_pool_alone(tmp_path):
    labels = news(tmp_path)
    data = load(tmp_path / "news.csv")
    assert (data.kind, data.task) == ("text", "classification")
    assert data.pool.shape[0] + data.test.shape[0] == 40
    bodies = pd.read_csv(tmp_path / "news.csv")["body"]
    pool, test = (bodies[rows].tolist() for rows in holdout(40, np.asarray(labels)))
    weights = WordWeights.learn([pool])
    assert np.allclose(data.pool.toarray(), weights(pool).toarray())
    assert np.allclose(data.test.toarray(), weights(test).toarray())
    assert any("'body' holds the texts to label and learn from" in note for note in data.notes)


def test_columns_and_vectors_decide_what_is_learned_from(tmp_path):
    labels = news(tmp_path)
    dated = load(tmp_path / "news.csv", reading=Reading.of({"columns": {"date": "category"}}))
    assert (dated.kind, dated.pool.shape[1]) == ("table", 12)
    vectors = np.arange(80.0).reshape(40, 2)
    np.savez(tmp_path / "V.npz", X=vectors[::-1], ids=[f"n{k}" for k in range(40)][::-1])
    data = load(tmp_path / "news.csv", reading=Reading.of({"embeddings": tmp_path / "V.npz"}))
    pool, _ = holdout(40, np.asarray(labels))
    assert data.vectors
    np.testing.assert_array_equal(data.pool, vectors[pool])
    with pytest.raises(InputError, match="reading has no option 'sizes'"):
        Reading.of({"sizes": 3})


def test_a_file_without_a_header(tmp_path, table):
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "b.csv", index=False, header=False)
    named = load(tmp_path / "a.csv", label="kind", reading=Reading(id_column="name"))
    reading = Reading(header=False, id_column="column 5")
    data = load(tmp_path / "b.csv", label="column 6", reading=reading)
    np.testing.assert_array_equal(data.pool, named.pool)
    with pytest.raises(InputError, match="id_column='column 5' does not go with 'digits', a data set of the catalogue"):
        load("digits", reading=reading)


def test_a_file_in_latin_1(tmp_path, table):
    table.assign(colour="grün").to_csv(tmp_path / "a.csv", index=False, encoding="latin-1")
    with pytest.raises(DataError, match="--encoding"):
        load(tmp_path / "a.csv", label="kind")
    assert load(tmp_path / "a.csv", label="kind", reading=Reading(encoding="latin-1")).task == "classification"
