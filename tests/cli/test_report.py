"""`ally report`: answers, a table, JSON, and errors that end with 2."""

import json
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture
def run(command):
    return partial(command, "report")


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """Real results: four strategies on digits, two seeds."""
    folder = tmp_path_factory.mktemp("grid")
    table = pd.read_csv(RESULTS / "catalogue_digits.csv", keep_default_na=False)
    table[table["strategy"].isin(["ally-clusters", "margin", "badge", "random"])].to_csv(
        folder / "results.csv", index=False
    )
    return folder


def test_answers_table_and_files(run, grid):
    done = run(grid)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "digits: test accuracy" in text
    assert "On digits, against random: " in text
    assert "ally-clusters is not shown to differ from random on digits: " in text
    assert f"{grid / 'report.html'} (2." in text
    assert {file.name for file in grid.iterdir()} == {
        "results.csv",
        "report.html",
        "curves.png",
        "curves.svg",
        "curves.csv",
        "summary.csv",
    }


def test_on_a_narrow_terminal_no_number_is_cut(run, tmp_path):
    table = pd.read_csv(RESULTS / "paper" / "self-supervised-small-fixed.csv", keep_default_na=False)
    table[table["dataset"] == "mnist"].to_csv(tmp_path / "results.csv", index=False)
    done = run(tmp_path, columns=80)
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout
    assert "0.9770" in done.stdout
    text = " ".join(done.stdout.split())
    assert "against random · erm" not in text
    assert "one seed: no interval" in text
    wide = run(tmp_path, columns=160).stdout
    assert "(random · smooth-unlabelled)" in wide


def test_json_holds_the_same(run, grid):
    done = run(grid, "--json", "--smoothing", 0.6, "--band", "std")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["baseline"] == "random"
    assert found["answer"].startswith("On digits, against random: ")
    assert [row["series"] for row in found["series"]] == ["ally-clusters", "random", "margin", "badge"]
    random = next(row for row in found["series"] if row["series"] == "random")
    assert (random["gain"], random["verdict"]) == (None, "baseline")
    assert all(Path(file).is_file() for file in found["files"])
    assert set(pd.read_csv(grid / "curves.csv")["smoothing"]) == {0.6}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "error: nowhere is not a folder; give one that `ally bench` wrote"),
        (["."], "error: results.csv does not exist"),
        (["{grid}", "--smoothing", "1"], "error: --smoothing 1.0 must be at least 0 and below 1"),
        (["{grid}", "--band", "sd"], "Invalid value for '--band'"),
        ([], "Missing argument 'DIR'"),
    ],
)
def test_bad_input_exits_with_2(run, grid, tmp_path, arguments, message):
    done = run(*(str(grid) if word == "{grid}" else word for word in arguments), cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_older_report_survives_a_broken_grid(run, grid, tmp_path):
    table = pd.read_csv(grid / "results.csv", keep_default_na=False)
    table.to_csv(tmp_path / "results.csv", index=False)
    (tmp_path / "report.html").write_text("older")
    table.assign(value="nan").to_csv(tmp_path / "results.csv", index=False)
    done = run(tmp_path)
    assert done.returncode == 2
    assert "line 2: value='nan' is not a finite number" in " ".join(done.stderr.split())
    assert (tmp_path / "report.html").read_text() == "older"
