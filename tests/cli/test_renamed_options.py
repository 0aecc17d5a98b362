"""Options of 0.1 still work: with a note that names today's, and the same result."""

import json

import numpy as np
import pandas as pd
import pytest

from ally.cli._renamed_options import RENAMED, replace_former_options
from ally.errors import InputError

TABLE = pd.DataFrame({"id": range(60), "x": np.arange(60) % 7, "kind": list("ab") * 30, "size": np.arange(60) / 8})


def test_an_option_of_0_1_is_read_as_that_of_today(capsys):
    names = {"--target": "--label", "--regression": "--task regression"}
    words = ["d", "--target", "y", "--target=z", "--out=--target", "--regression", "--", "--target"]
    today = ["d", "--label", "y", "--label=z", "--out=--target", "--task", "regression", "--", "--target"]
    assert replace_former_options(words, names) == today
    assert capsys.readouterr().err.splitlines() == [
        "note: --target is --label now; the old name goes with 0.3",
        "note: --regression is --task regression now; the old name goes with 0.3",
    ]
    for both in (["--target", "y", "--label=z"], ["--regression", "--task", "classification"]):
        with pytest.raises(InputError, match="now, and both are given; leave --"):
            replace_former_options(both, names)


@pytest.fixture
def run_both(command, tmp_path):
    """Runs a command by today's options and by those of 0.1, each in its own folder; gives what they print."""

    def run(*words, former):
        printed = []
        for folder, names in (("today", {}), ("former", former)):
            (tmp_path / folder).mkdir(exist_ok=True)
            TABLE.to_csv(tmp_path / folder / "t.csv", index=False)
            line = " ".join(map(str, words))
            for old, new in names.items():
                assert new in line
                line = line.replace(new, old)
            done = command(*line.split(), cwd=tmp_path / folder)
            assert done.returncode == 0, done.stderr
            notes = [f"note: {old} is {new} now; the old name goes with 0.3" for old, new in names.items()]
            assert [note for note in done.stderr.splitlines() if "the old name goes" in note] == notes
            printed.append(done.stdout.replace(str(tmp_path / folder), ""))
        return printed

    return run


def former_of(name):
    return dict(RENAMED[name])


def test_bench_and_report(run_both, tmp_path):
    few = "--strategy margin --strategy random --model linear --seeds 2 --rounds 2 --init 6 --batch 3 --workers 0"
    run_both(f"bench --dataset t.csv --label kind --look-at 9 {few} --out run --json", former=former_of("bench"))
    today, former = (pd.read_csv(tmp_path / name / "run" / "results.csv") for name in ("today", "former"))
    same = ["strategy", "seed", "labels", "value"]
    pd.testing.assert_frame_equal(today[same], former[same])
    plain = (tmp_path / "today" / "run" / "curves.csv").read_text()
    run_both("report run --smoothing 0.8", former=former_of("report"))
    today, former = ((tmp_path / name / "run" / "curves.csv").read_text() for name in ("today", "former"))
    assert today == former != plain


def test_generate(run_both, tmp_path):
    few = "--share 0.5 --steps 3 --epochs 2"
    run_both(f"generate --dataset t.csv --label kind --n 2 {few} --out made", former=former_of("generate"))
    today, former = (np.load(tmp_path / name / "made" / "samples.npy") for name in ("today", "former"))
    assert len(today) == 2
    np.testing.assert_array_equal(today, former)


def test_new(run_both):
    columns = "--column x --label size --model linear --by-hand --json"
    names = former_of("new")
    today, former = run_both(f"new c --from t.csv --task regression --validation 4 {columns}", former=names)
    assert today == former
    assert json.loads(today)["task"] == "regression"
    assert json.loads(today)["validate"] == 4


@pytest.mark.parametrize("name", ["tell", "import"])
def test_labels_in_another_column(name, run_both):
    run_both("new c --from t.csv --column x --label none --classes a,b --by-hand --json", former={})
    today, former = run_both(f"{name} c t.csv --label kind --json", former=former_of(name))
    assert today == former
    assert json.loads(today)["labelled"] == 60


def test_help_names_only_todays(command):
    for name, names in RENAMED.items():
        page = command(name, "--help", columns=200).stdout.split()
        assert not set(names) & set(page)
        assert {new.split()[0] for new in names.values()} <= set(page)
