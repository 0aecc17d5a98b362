import csv
import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ally
from ally.experiment import COLUMNS, demo, run_cells
from ally.testing.pools import blobs

LABELLED = 9
"""Too few labels to choose a learner by cross-validation, which is slow."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    scene = blobs("classification")
    names = [f"s{row}" for row in range(60)]
    np.save(folder / "X.npy", scene.X)
    frame = pd.DataFrame(scene.X, columns=list("abcd")).assign(id=names)
    frame.to_csv(folder / "X.csv", index=False)
    frame.to_parquet(folder / "X.parquet")
    (folder / "rows.csv").write_text("id,label\n" + "".join(f"{row},{int(scene.y[row])}\n" for row in range(LABELLED)))
    (folder / "names.csv").write_text(
        "id,label\n" + "".join(f"s{row},class{int(scene.y[row])}\n" for row in range(LABELLED))
    )
    (folder / "numbers.csv").write_text(
        "id,label\n" + "".join(f"{row},{scene.X[row, 0]:.3f}\n" for row in range(LABELLED))
    )
    return folder


def test_version_and_help(process, command):
    assert process("--version").stdout == f"ally {ally.__version__}\n"
    text = command("--help").stdout
    assert all(name in text for name in ("demo", "query", "strategies"))


def test_strategies(command, files):
    table = command("strategies")
    assert table.returncode == 0
    listed = json.loads(command("strategies", "--json").stdout)
    assert [row["name"] for row in listed] == list(ally.CATALOGUE)
    assert all(name in table.stdout for name in ally.CATALOGUE)
    assert [row["objective"] for row in listed[:2]] == ["erm", "pdcl"]
    needs = {row["name"]: row["needs"] for row in listed}
    assert listed[5]["tasks"] == ["classification"]
    assert needs["random"] == []
    assert needs["badge"] == ["probabilities", "embeddings"]
    assert needs["bald"] == ["dropout or an ensemble"]
    assert (needs["ally"], needs["ally-clusters"]) == (["embeddings"], ["embeddings", "duals"])
    assert needs["vaal"] == ["extra training"]


def test_query_writes_csv_to_standard_output(command, files):
    done = command("query", files / "X.npy", "--labels", files / "rows.csv", "--n", 4)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len({row["id"] for row in rows}) == 4
    assert all(int(row["id"]) >= LABELLED for row in rows)
    assert "note: task: classification, as the labels are 3 distinct classes" in done.stderr


def test_rank_quality_is_reported(command, files, tmp_path):
    scene = blobs("classification", n=60, labelled=40)
    labels = tmp_path / "L.csv"
    labels.write_text("id,label\n" + "".join(f"{row},{int(scene.y[row])}\n" for row in range(40)))
    done = command(
        "query", files / "X.npy", "--labels", labels, "--n", 4, "--strategy", "ally-clusters", "--model", "mlp"
    )
    assert "the dual head ranks held-out labelled samples with correlation" in " ".join(done.stderr.split())


@pytest.mark.parametrize("name", ["X.csv", "X.parquet"])
def test_query_with_ids_to_a_file(command, files, tmp_path, name):
    out = tmp_path / "Q.csv"
    done = command(
        "query", files / name, "--labels", files / "names.csv", "--n", 3, "--strategy", "margin", "--out", out
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    table = pd.read_csv(out)
    assert table["id"].str.startswith("s").all()
    assert set(table["predicted"]) <= {"class0", "class1", "class2"}
    assert list(tmp_path.iterdir()) == [out]


def test_no_spreadsheet_runs_what_a_query_found(command, files, tmp_path):
    frame = pd.read_csv(files / "X.csv")
    frame["id"] = [f"=cmd|' /C calc'!A{row}" for row in range(len(frame))]
    frame.to_csv(tmp_path / "odd.csv", index=False)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{frame['id'][row]},@SUM({row % 2})\n" for row in range(LABELLED)))
    done = command("query", tmp_path / "odd.csv", "--labels", labels, "--n", 3, "--strategy", "margin")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 3, done.stderr
    assert all(row["id"].startswith("'=cmd") and row["predicted"].startswith("'@SUM") for row in rows)
    assert not any(cell.startswith(("=", "@")) for row in rows for cell in row.values())


def test_query_is_repeatable_and_equals_python(process, command, files):
    call = ("query", files / "X.npy", "--labels", files / "rows.csv", "--n", 4, "--seed", 3, "--json")
    first, second = process(*call), command(*call)
    assert first.stdout == second.stdout
    scene = blobs("classification", labelled=LABELLED)
    expected = ally.query(scene.X, scene.y, n=4, random_state=3).ids.tolist()
    assert json.loads(first.stdout)["ids"] == expected


def test_query_without_labels_and_for_regression(command, files):
    cold = command("query", files / "X.npy", "--n", 2, "--json")
    assert any("no labels yet" in note for note in json.loads(cold.stdout)["notes"])
    numbers = command("query", files / "X.npy", "--labels", files / "numbers.csv", "--n", 2, "--json")
    assert "regression" in json.loads(numbers.stdout)["notes"][0]


def test_declared_classes(command, files):
    done = command(
        "query", files / "X.npy", "--labels", files / "rows.csv", "--n", 2, "--classes", "0, 1, 2, 3", "--json"
    )
    assert "4 classes were declared" in json.loads(done.stdout)["notes"][0]


def test_duplicates_and_outliers(command, tmp_path):
    scene = blobs("classification")
    np.save(tmp_path / "X.npy", np.concatenate([scene.X, scene.X]))
    (tmp_path / "L.csv").write_text("id,label\n" + "".join(f"{row},{int(scene.y[row])}\n" for row in range(9)))

    def ask(*options):
        done = command(
            "query",
            tmp_path / "X.npy",
            "--labels",
            tmp_path / "L.csv",
            "--n",
            40,
            "--strategy",
            "margin",
            "--json",
            *options,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert len(set(found["ids"])) == 40
        assert all(f"note: {note}" in " ".join(done.stderr.split()) for note in found["notes"])
        assert "too few labels to choose a model (9)" in found["notes"][1]
        return found["ids"], found["notes"][2:]

    ids, notes = ask()
    assert len({row % 60 for row in ids}) == 40
    assert notes == ["60 exact copies set aside"]
    ids, notes = ask("--duplicates", "keep")
    assert len({row % 60 for row in ids}) < 30
    assert notes == []
    ids, notes = ask("--duplicates", "near", "--outliers", "0.05")
    assert len({row % 60 for row in ids}) == 40
    assert notes[0] == "60 exact copies set aside"
    assert "2 outliers set aside" in notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "nowhere.npy", "--n", "2"], "error: nowhere.npy is missing; give the path of a file"),
        (["query", "{X.npy}", "--labels", "nowhere.csv", "--n", "2"], "error: nowhere.csv is missing"),
        (
            ["query", "{X.npy}", "--labels", "{rows.csv}", "--n", "99"],
            "error: 51 samples are free and 99 were requested",
        ),
        (["query", "{X.npy}", "--labels", "{rows.csv}", "--n", "0"], "error: --n 0 is not a positive whole number"),
        (["query", "{X.npy}", "--labels", "{names.csv}", "--n", "2"], "error: id 's0' is not a row number of the pool"),
        (
            ["query", "{X.csv}", "--labels", "{rows.csv}", "--n", "2"],
            "error: id 0 is not in the pool of 60 samples; ids look like 's0'",
        ),
        (["query", "{X.npy}", "--labels", "{rows.csv}", "--n", "2", "--strategy", "bagde"], "did you mean 'badge'?"),
        (
            ["query", "{X.npy}", "--labels", "{rows.csv}", "--n", "2", "--classes", "0,1"],
            "error: label 2 is not one of the 2 classes",
        ),
        (["query", "{X.npy}", "--n", "2", "--outliers", "2"], "error: --outliers 2.0 is not a share of the candidates"),
        (["query", "{X.npy}", "--n", "2", "--duplicates", "some"], "Invalid value for '--duplicates'"),
        (["query", "{X.csv}", "--id-column", "name", "--n", "2"], "has no column 'name'"),
        (
            ["query", "{X.npy}", "--n", "2", "--out", "no/such/Q.csv"],
            "error: --out no/such/Q.csv: the folder no/such does not exist",
        ),
        (["query", "{X.npy}", "--n", "2", "--out", "."], "error: --out . is a folder"),
        (["demo", "--out", "{X.npy}"], "File exists"),
        (["query", "{X.npy}"], "Missing option"),
        (["nothing"], "No such command"),
    ],
)
def test_bad_input_exits_with_2(command, files, arguments, message):
    words = [str(files / word[1:-1]) if word.startswith("{") else word for word in arguments]
    done = command(*words, cwd=files)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategies", "epochs", "processes"),
    [(("ally", "random", "badge"), 8, False), pytest.param(demo.STRATEGIES, 30, True, marks=pytest.mark.slow)],
    ids=["3", "all"],
)
def test_demo_tells_the_story(command, tmp_path, monkeypatch, strategies, epochs, processes):
    if not processes:
        monkeypatch.setattr("ally.experiment.run_cells", lambda trial, cells, _, told: run_cells(trial, cells, 0, told))
    monkeypatch.setattr(demo, "STRATEGIES", strategies)
    monkeypatch.setitem(demo.DIGITS, "training", replace(demo.DIGITS["training"], epochs=epochs))
    done = command("demo", "--out", tmp_path / "demo", "--seeds", 2)
    assert done.returncode == 0, done.stderr
    written = {"results.csv", "settings.json", "report.html", "curves.png", "curves.svg", "curves.csv", "summary.csv"}
    assert {path.name for path in (tmp_path / "demo").iterdir()} == written
    results = pd.read_csv(tmp_path / "demo" / "results.csv", keep_default_na=False)
    assert list(results) == COLUMNS
    digits = results[results["dataset"] == "digits"]
    assert list(digits["strategy"].unique()) == list(strategies)
    assert set(results[results["dataset"] == "diabetes"]["strategy"]) == {
        n for n in strategies if "regression" in ally.CATALOGUE[n].tasks
    }
    assert (
        digits.groupby(["strategy", "seed"])["labels"].agg(list).map(lambda labels: labels == list(range(20, 201, 20)))
    ).all()
    assert digits[digits["round"] == 9]["value"].min() > 0.7
    assert "random on digits" in done.stdout
    assert "random on diabetes" in done.stdout
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert 'src="http' not in page
    assert 'href="http' not in page
    assert (tmp_path / "demo" / "curves.png").read_bytes().startswith(b"\x89PNG")


def _commands(group, words=("ally",)):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def test_every_command_has_an_example_in_its_help():
    import typer.main

    from ally.cli.app import app

    found = dict(_commands(typer.main.get_command(app)))
    assert {"ally query", "ally tell", "ally datasets fetch", "ally paper run"} <= set(found)
    assert [name for name, command in found.items() if f"Example: {name}" not in command.help] == []


def test_an_interrupt_during_start_up_prints_one_word():
    program = """
import sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from ally.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
