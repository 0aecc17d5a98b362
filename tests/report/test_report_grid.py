import json

import pytest
from report_grids import drawn

from ally.errors import AllyError, InputError
from ally.report import read_description, read_results
from ally.report.grid import COLUMNS, Description


@pytest.fixture
def folder(tmp_path):
    drawn().to_csv(tmp_path / "results.csv", index=False)
    return tmp_path


def test_a_grid_is_read_as_it_was_written(folder):
    table = drawn()
    for path in (folder, folder / "results.csv"):
        found = read_results(path)
        assert list(found) == list(COLUMNS)
        assert (found["value"] - table["value"]).abs().max() < 1e-15
        assert found.drop(columns="value").equals(
            table.drop(columns="value").astype(found.drop(columns="value").dtypes)
        )


def test_columns_are_those_that_experiments_write():
    from ally.experiment import COLUMNS as WRITTEN

    assert list(COLUMNS) == WRITTEN


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="seed"), "has no column 'seed'; its columns must be dataset,model"),
        (lambda t: t.iloc[:0], "holds no rows; run the grid first"),
        (lambda t: t.assign(value=t["value"].where(t.index != 3)), "line 5: value='' is not a finite number"),
        (
            lambda t: t.assign(value=t["value"].where(t.index != 3, float("inf"))),
            "line 5: value='inf' is not a finite number",
        ),
        (
            lambda t: t.assign(labels=t["labels"].astype(object).where(t.index != 0, "many")),
            "line 2: labels='many' is not a whole number",
        ),
        (lambda t: t.assign(seed=t["seed"] + 0.5), "line 2: seed='0.5' is not a whole number"),
        (lambda t: t.assign(metric="joy"), "unknown metric 'joy'"),
        (lambda t: t.assign(metric=["rmse", *t["metric"][1:]]), "toy is measured by rmse and accuracy"),
        (lambda t: t.assign(strategy=["", *t["strategy"][1:]]), "line 2: strategy is empty"),
        (lambda t: t.iloc[[0, 1, 1, 2]], "line 4: ally on toy, seed 0, round 1 appears twice"),
        (lambda t: t.assign(labels=10), "labels 10 appears with two rounds of equally many labels"),
    ],
)
def test_bad_rows_are_named(tmp_path, change, message):
    change(drawn()).to_csv(tmp_path / "results.csv", index=False)
    with pytest.raises(AllyError) as caught:
        read_results(tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2,3\n4\n1,2,3,4,5\n", b"\xff\xfe\x00"])
def test_files_that_are_not_tables_are_refused(tmp_path, content):
    (tmp_path / "results.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"results\.csv"):
        read_results(tmp_path)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"results\.csv does not exist; give a folder that `ally bench` wrote"):
        read_results(tmp_path)


def test_settings_may_be_missing_or_partial(tmp_path):
    assert read_description(tmp_path) == Description()
    (tmp_path / "settings.json").write_text(
        json.dumps({"title": "T", "baseline": None, "settings": {"b": 20}, "other": 1})
    )
    found = read_description(tmp_path)
    assert (found.title, found.baseline, found.settings, found.notes) == ("T", None, {"b": "20"}, ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "holds a list; it must be an object"),
        ('{"notes": "x"}', "notes is 'x'; it must be a list of texts"),
        ('{"title": 3}', "title is 3; it must be a text"),
        ('{"settings": ["a"]}', "settings is \\['a'\\]; it must be an object"),
    ],
)
def test_bad_settings_are_named(tmp_path, content, message):
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_description(tmp_path)
