"""Every command of docs/campaign.md runs, in order, in an empty folder, and prints what the page shows."""

import csv
import re

import pytest

from doc_commands import DOCS, read_page, run_blocks, shape_of

PAGE = read_page("campaign.md")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("campaign.md")]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder afterwards, and what each block of commands printed beside what the page shows."""
    folder = tmp_path_factory.mktemp("tutorial")
    return folder, run_blocks(PAGE, folder)


def test_commands_print_what_is_shown(ran):
    assert len(ran[1]) >= 8
    for said, shown in ran[1]:
        assert not shown or shape_of(said) == shape_of(shown)


def test_the_tutorial_campaign_ends_as_described(ran):
    truth = dict(csv.reader((ran[0] / "truth.csv").open()))
    told = {row["id"]: row["label"] for row in csv.DictReader((ran[0] / "labels.csv").open())}
    assert len(told) == 60
    assert all(truth[id] == label for id, label in told.items())
    rest = list(csv.DictReader((ran[0] / "rest.csv").open()))
    assert len(rest) == 240
    assert sum(truth[row["id"]] == row["label"] for row in rest) > 0.75 * len(rest)
    assert sum(len(list(folder.iterdir())) for folder in (ran[0] / "by-class").iterdir()) == 60


@pytest.mark.parametrize("path", re.findall(r"\]\(((?!http)[^)#]+)\)", PAGE))
def test_links_exist(path):
    assert (DOCS / path).exists()
