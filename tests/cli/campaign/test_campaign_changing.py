"""`ally change`: settings of a campaign under way."""

import json

import pytest

import ally as library


@pytest.fixture
def pets(ally, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(f"text {n}" for n in range(30)))
    ally("new", "pets", "--from", "t.txt", "--classes", "a,b", "--by-hand")


def test_settings_change_and_are_printed(ally, pets):
    assert (
        ally("change", "pets", "--classes", "a,b,c", "--batch", 7).out
        == "changed classes to a, b, c\nchanged batch to 7\n"
    )
    assert len(ally("ask", "pets").rows) == 7
    done = ally("change", "pets", "--lease", 90, "--random-share", 0.5, "--by-hand")
    assert done.out.splitlines() == [
        "changed lease to 90 minutes",
        "changed random share to 0.5",
        "changed training to by hand",
    ]
    found = json.loads(ally("change", "pets", "--budget", 50, "--lease", 5, "--automatic", "--json").out)
    assert (found["budget"], found["lease_seconds"], found["batch"], found["automatic"]) == (50, 300, 7, True)


def test_a_source_that_moved(ally, pets, tmp_path):
    (tmp_path / "t.txt").rename(tmp_path / "u.txt")
    assert "ally change NAME --from" in ally("retrain", "pets", code=2).err
    assert "changed source to u.txt" in ally("change", "pets", "--from", "u.txt").out
    ally("retrain", "pets")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to change"),
        (["--classes", "a,c"], "class 'b' is missing"),
        (["--batch", "0"], "--batch 0"),
        (["--strategy", "best"], "unknown strategy"),
        (["--from", "nowhere.txt"], "nowhere.txt does not exist"),
        (["--lease", "-1"], "--lease -1 is out of range; give minutes"),
    ],
)
def test_impossible_changes_are_refused(ally, pets, words, message):
    assert message in ally("change", "pets", *words, code=2).err


@pytest.mark.parametrize(
    "words",
    [["--from", "u.txt", "--batch", 0], ["--from", "u.txt", "--classes", "a,c"], ["--from", "no.txt", "--batch", 3]],
)
def test_changes_are_all_or_nothing(ally, pets, tmp_path, words):
    (tmp_path / "u.txt").write_text((tmp_path / "t.txt").read_text())
    with library.Campaign.open("pets.db") as campaign:
        before = campaign.settings
    ally("change", "pets", *words, code=2)
    with library.Campaign.open("pets.db") as campaign:
        assert campaign.settings == before


@pytest.mark.parametrize(
    ("first", "then", "classes"),
    [
        ("0,1,2", "0,1,2,none", [0, 1, 2, "none"]),
        ("0,1", "2,1,0", [2, 1, 0]),
        ("a,b", "a, b, 3", ["a", "b", "3"]),
        ("1,b", "1,b,2", ["1", "b", "2"]),
    ],
)
def test_existing_classes_keep_their_type(ally, tmp_path, first, then, classes):
    (tmp_path / "t.csv").write_text("id,text\n" + "".join(f"r{n},text {n}\n" for n in range(30)))
    ally("new", "c", "--from", "t.csv", "--classes", first, "--by-hand")
    ally("tell", "c", f"r1={first.split(',')[0]}", "--annotator", "ann")
    assert json.loads(ally("change", "c", "--classes", then, "--json").out)["classes"] == classes
    ally("tell", "c", f"r2={classes[-1]}", "--annotator", "ann")
    with library.Campaign.open("c.db") as campaign:
        assert set(campaign.labels().values()) <= set(classes)


def test_existing_labels_become_classes_unchanged(ally, tmp_path):
    (tmp_path / "t.csv").write_text("id,text\n" + "".join(f"r{n},text {n}\n" for n in range(30)))
    ally("new", "c", "--from", "t.csv", "--by-hand")
    ally("tell", "c", "r1=0", "r2=1")
    assert json.loads(ally("change", "c", "--classes", "0,1,none", "--json").out)["classes"] == [0, 1, "none"]


def test_typos_and_new_classes_take_one_run(ally, rows):
    told = ally("tell", "rows", "r00=hgih", "r01=lwo", "r02=medium", code=2).err
    assert "3 labels are none of the classes 'low', 'high': 'hgih' (of 'r00'; did you mean 'high'?)" in told
    assert "`ally classes rows add hgih lwo medium`, or --add-classes takes all of them" in told
    assert "1 label saved" in ally("tell", "rows", "r02=medium", "--add-classes").out
    listed = ally("classes", "rows").out.splitlines()
    assert [line.split() for line in listed] == [["class", "labels"], ["low", "0"], ["high", "0"], ["medium", "1"]]
    assert (
        "medium is middle from now on (1 answer updated)" in ally("classes", "rows", "rename", "medium", "middle").out
    )
    assert "middle merged into high" in ally("classes", "rows", "merge", "middle", "high").out
    ally("classes", "rows", "undo")
    done = ally("classes", "rows", "undo")
    assert "classes: low, high, medium" in done.out
    assert "there is a class 'low' already" in ally("classes", "rows", "add", "low", code=2).err
    assert "rename takes OLD NEW, and 1 class were given" in ally("classes", "rows", "rename", "low", code=2).err


def test_evaluation_samples_are_added_later(ally, rows):
    assert "20 samples are held out for the learning curve" in ally("change", "rows", "--evaluate", 20).out
    found = json.loads(ally("status", "rows", "--json").out)
    assert found["evaluate"]["samples"] == 20
    assert sum(row["kind"] == "evaluate" for row in ally("ask", "rows").rows) == 2
    assert (
        "--evaluate 20 is not more than the 20 samples already held out"
        in ally("change", "rows", "--evaluate", 20, code=2).err
    )
