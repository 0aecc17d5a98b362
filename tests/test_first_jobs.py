"""Every command of docs/first-jobs.md runs, in order, in an empty folder, and prints what the page shows."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "first-jobs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python|sh|text)\n(.*?)```", PAGE, flags=re.DOTALL)
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("first-jobs.md")]


def shape_of(text):
    """Words stay, numbers do not: the last digits differ between processors."""
    return [re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d.]*", "#", line)).strip() for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder afterwards, and what each block of commands printed beside what the page shows."""
    folder = tmp_path_factory.mktemp("jobs")
    found = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "ALLY_ENCODER": "none", "COLUMNS": "120"}
    printed = []
    for kind, block in BLOCKS:
        if kind == "python":
            (folder / re.match(r"# (\w+\.py)\n", block)[1]).write_text(block)
        elif kind == "sh":
            line, environment = ["bash", "-ec", block], {**os.environ, **found, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (block, done.stderr)
            printed.append([done.stdout, ""])
        else:
            printed[-1][1] = block
    return folder, printed


def test_commands_print_what_is_shown(ran):
    assert len(ran[1]) == 4
    for said, shown in ran[1]:
        assert shape_of(said) == shape_of(shown)


def test_the_labels_are_right(ran):
    truth = dict(csv.reader((ran[0] / "truth.csv").open()))
    for name, least in (("labels.csv", 20), ("news-labels.csv", 40)):
        told = {row["id"]: row["label"] for row in csv.DictReader((ran[0] / name).open())}
        assert len(told) >= least
        assert all(truth[id] == label for id, label in told.items())
    rest = list(csv.DictReader((ran[0] / "rest.csv").open()))
    assert sum(truth[row["id"]] == row["label"] for row in rest) > 0.7 * len(rest)
