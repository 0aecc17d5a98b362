"""`ally bench` and `ally paper` as a user calls them."""

import json

import numpy as np
import pandas as pd
import pytest

from ally.experiment import COLUMNS


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("houses")
    table = pd.DataFrame(
        {
            "rooms": rng.integers(1, 9, 200),
            "area": rng.normal(90, 30, 200),
            "town": rng.choice(["Ulm", "Ghent", "Oulu"], 200),
        }
    )
    table["price"] = 1000 * table["area"] + 20_000 * table["rooms"] + rng.normal(0, 5000, 200)
    table.loc[3, "area"] = np.nan
    table["note [id]"] = [f"house {number}" for number in range(200)]
    table.to_csv(folder / "houses.csv", index=False)
    return folder


def test_bench_on_a_table_of_ones_own(command, houses):
    call = (
        "bench",
        "--dataset",
        "houses.csv",
        "--label",
        "price",
        "--strategy",
        "coreset",
        "--strategy",
        "random",
        "--strategy",
        "margin",
        "--seeds",
        2,
        "--rounds",
        1,
        "--model",
        "linear",
        "--workers",
        0,
        "--out",
        "runs",
    )
    first = command(*call, cwd=houses)
    assert first.returncode == 0, first.stderr
    assert "4 of 4 campaigns to run" in first.stderr
    said = first.stderr.splitlines()
    assert any(
        line.startswith("note: houses.csv: column 'note [id]': left out: it has more than 100 different texts")
        for line in said
    )
    assert "note: margin is not defined for regression, so not run on houses.csv" in said
    assert any("houses.csv: task: regression, as the labels are numbers with fractions" in line for line in said)
    assert any(
        line.startswith("note: houses.csv: 1 values are odd") and "column 'area' is empty, and was not" in line
        for line in said
    )
    settings = json.loads((houses / "runs" / "settings.json").read_text())["settings"]
    assert settings["hygiene"].startswith("Hygiene(duplicates='exact'")
    results = pd.read_csv(houses / "runs" / "results.csv", keep_default_na=False)
    assert list(results) == COLUMNS
    assert set(results["strategy"]) == {"coreset", "random"}
    assert set(results["metric"]) == {"rmse"}
    page = (houses / "runs" / "report.html").read_text(encoding="utf-8")
    assert "margin is not defined for regression, so not run on houses.csv" in page
    again = command(*call, "--json", cwd=houses)
    assert again.returncode == 0, again.stderr
    assert "campaigns to run" not in again.stderr
    assert json.loads(again.stdout)
    assert pd.read_csv(houses / "runs" / "results.csv", keep_default_na=False).equals(results)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--dataset", "nope", "--out", "x"), "error: unknown data set 'nope'"),
        (("--dataset", "houses.csv", "--out", "x"), "error: "),
        (("--dataset", "houses.csv", "--label", "nope", "--out", "x"), "nope"),
        (("--dataset", "digits", "--strategy", "nope", "--out", "x"), "error: unknown strategy 'nope'"),
        (("--dataset", "digits", "--model", "nope", "--out", "x"), "error: unknown model 'nope'"),
        (("--dataset", "digits", "--objective", "nope", "--out", "x"), "error: unknown objective 'nope'"),
        (("--dataset", "digits", "--batch", "500", "--rounds", "9", "--out", "x"), "labels are more than the pool"),
        (
            ("--dataset", "houses.csv", "--label", "price", "--strategy", "badge", "--out", "x"),
            "none of badge is defined for regression",
        ),
    ],
)
def test_wrong_calls_end_with_2_and_write_nothing(command, houses, arguments, told):
    result = command("bench", *arguments, cwd=houses)
    assert result.returncode == 2
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert not (houses / "x").exists()


def test_the_settings_are_those_of_the_results(command, tmp_path):
    call = ("bench", "--strategy", "random", "--strategy", "coreset", "--seeds", 1, "--model", "linear", "--workers", 0)
    call = (*call, "--out", "runs")
    assert command(*call, "--dataset", "iris", "--rounds", 2, cwd=tmp_path).returncode == 0
    second = command(*call, "--dataset", "wine", "--rounds", 1, cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert "2 other campaigns in runs are not part of these results" in " ".join(second.stderr.split())
    settings = json.loads((tmp_path / "runs" / "settings.json").read_text())["settings"]
    results = pd.read_csv(tmp_path / "runs" / "results.csv", keep_default_na=False)
    assert (settings["data"], settings["rounds"]) == ("wine", "1")
    assert (set(results["dataset"]), results["round"].max()) == ({"wine"}, 1)


def test_paper_show_tells_of_the_data(command, tmp_path):
    (tmp_path / "mnist").mkdir()
    absent = json.loads(command("paper", "show", "clusters", "--json", "--data-dir", tmp_path).stdout)
    assert any("ally datasets fetch mnist" in value for value in absent.values())
    assert absent["hygiene"] == "none"
    smoke = json.loads(command("paper", "show", "ptd", "--scale", "smoke", "--json").stdout)
    assert smoke["data"] == "diabetes"


def test_one_training_is_one_process(command, tmp_path):
    done = command("paper", "run", "generation", "--scale", "smoke", "--workers", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert command("paper", "run", "generation", "--scale", "smoke", "--workers", 2, cwd=tmp_path).returncode == 2


def test_paper_lists_shows_and_runs(command, tmp_path):
    listed = command("paper", "list", "--json")
    assert {"mnist-200", "generation"} <= {entry["name"] for entry in json.loads(listed.stdout)}
    shown = json.loads(command("paper", "show", "clusters", "--scale", "small", "--json").stdout)
    assert shown["batch"] == "200"
    assert shown["claim"] == "More clusters are better."
    ran = command("paper", "run", "diversity", "--scale", "smoke", "--workers", 0, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    folder = tmp_path / "paper-runs" / "diversity-smoke"
    assert {"results.csv", "settings.json", "report.html", "curves.png", "curves.svg"} <= {
        path.name for path in folder.iterdir()
    }
    assert "digits stand in for mnist at this scale" in (folder / "report.html").read_text(encoding="utf-8")
    wrong = command("paper", "run", "nope")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: unknown preset 'nope'")


def test_bench_measures_the_chosen_metric_and_the_constant_answer(command, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(X[:, 0] > 1.2, "rare", "common"))
    table.to_csv(tmp_path / "t.csv", index=False)
    call = ("bench", "--dataset", "t.csv", "--label", "kind", "--strategy", "random", "--seeds", 1, "--rounds", 0)
    call = (*call, "--model", "linear")
    plain = command(*call, "--workers", 0, "--out", "plain", cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert "note: t.csv: the classes are uneven: common has " in plain.stderr
    assert "balanced_accuracy, macro_f1 and auroc say more (--metric)" in plain.stderr
    assert "Always answering the most common class on t.csv scores 0." in plain.stdout
    area = command(*call, "--metric", "auroc", "--workers", 0, "--out", "area", cwd=tmp_path)
    assert area.returncode == 0, area.stderr
    assert "uneven" not in area.stderr
    results = pd.read_csv(tmp_path / "area" / "results.csv")
    assert results["metric"].unique().tolist() == ["auroc"]
    assert results["value"].between(0.5, 1).all()
    assert json.loads((tmp_path / "area" / "settings.json").read_text())["constants"] == {"t.csv": 0.5}
    assert "scores 0.5000 (AUROC)" in (tmp_path / "area" / "report.html").read_text(encoding="utf-8")
    wrong = command(*call, "--metric", "rmse", "--workers", 0, "--out", "wrong", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "--metric 'rmse' is not a metric of classification; use accuracy" in wrong.stderr
    assert not (tmp_path / "wrong").exists()


def test_a_report_says_if_a_model_is_no_better_than_a_constant(tmp_path):
    from dataclasses import replace

    from ally.cli.report import tables
    from ally.report import answer, load
    from ally.report.page.tables import comparison_table

    row = "toy,default,erm,,random,{},10,{},{},0,accuracy,{},1,1,"
    lines = [row.format(seed, number, 10 + 10 * number, 0.6) for seed in range(2) for number in range(2)]
    (tmp_path / "results.csv").write_text("\n".join([",".join(COLUMNS[:15]), *lines]))
    summary, _ = load(tmp_path)
    said = answer(replace(summary, constants={"toy": 0.7}))
    assert "Always answering the most common class on toy scores 0.7000 (accuracy); random ends no better:" in said
    known = replace(summary, constants={"toy": 0.5})
    assert "every series ends better" in answer(known)
    (table,) = tables(known)
    assert [list(column.cells)[-1] for column in table.columns][:3] == ["most common class", "0.5000", "0.5000"]
    assert comparison_table(known.comparisons, 0.5).rows[-1][0].text == "most common class"
    assert all(row[0].text != "most common class" for row in comparison_table(known.comparisons).rows)


def test_bench_reads_a_table_as_a_campaign_does(command, houses):
    plain = pd.read_csv(houses / "houses.csv").head(60)
    plain.to_csv(houses / "plain.csv", index=False, header=False, sep=";", decimal=",")
    call = ("--strategy", "random", "--seeds", 1, "--rounds", 0, "--init", 10, "--model", "linear", "--workers", 0)
    done = command(
        *("bench", "--dataset", "plain.csv", "--no-header", "--label", "column 4", "--column", "column 1"),
        *("--column", "column 2=number", *call, "--out", "headerless"),
        cwd=houses,
    )
    assert done.returncode == 0, done.stderr
    assert "note: plain.csv: numbers are written with a comma: 1,5 is read as 1.5" in done.stderr
    settings = json.loads((houses / "headerless" / "settings.json").read_text())["settings"]
    assert settings["read with header"] == "False"
    assert settings["read with columns"] == "{'column 1': None, 'column 2': 'number'}"
