"""Every command of docs/first-jobs.md runs, in order, in an empty folder, and prints what the page shows."""

import csv

import pytest

from doc_commands import read_page, run_blocks, shape_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("first-jobs.md")]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder afterwards, and the output of each block of commands with what the page shows."""
    folder = tmp_path_factory.mktemp("jobs")
    return folder, run_blocks(read_page("first-jobs.md"), folder, ALLY_ENCODER="none", COLUMNS="120")


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
