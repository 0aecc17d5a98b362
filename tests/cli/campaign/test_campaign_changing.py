"""`ally change`: settings of a campaign under way."""

import json

import pytest


@pytest.fixture
def pets(ally, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(f"text {n}" for n in range(30)))
    ally("new", "pets", "--from", "t.txt", "--classes", "a,b", "--by-hand")


def test_settings_change_and_are_told(ally, pets):
    assert ally("change", "pets", "--classes", "a,b,c", "--batch", 7).out == "classes is a, b, c from now on\nbatch is 7 from now on\n"
    assert len(ally("ask", "pets").rows) == 7
    found = json.loads(ally("change", "pets", "--budget", 50, "--lease", 5, "--automatic", "--json").out)
    assert (found["budget"], found["lease_seconds"], found["batch"], found["automatic"]) == (50, 300, 7, True)


def test_a_source_that_moved(ally, pets, tmp_path):
    (tmp_path / "t.txt").rename(tmp_path / "u.txt")
    assert "ally change NAME --from" in ally("retrain", "pets", code=2).err
    assert "the source is u.txt" in ally("change", "pets", "--from", "u.txt").out
    ally("retrain", "pets")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing is to be changed"),
        (["--classes", "a,c"], "class 'b' is missing"),
        (["--batch", "0"], "batch=0"),
        (["--strategy", "best"], "unknown strategy"),
        (["--from", "nowhere.txt"], "nowhere.txt is not there"),
    ],
)
def test_what_cannot_be(ally, pets, words, message):
    assert message in ally("change", "pets", *words, code=2).err
