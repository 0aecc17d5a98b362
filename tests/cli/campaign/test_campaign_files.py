"""`ally import` and `ally export`: what goes out comes in again."""

import csv
import json

import pytest

import ally as library


@pytest.fixture
def told(ally, photos):
    """A campaign with labels, skips, a correction and an undo, and what stands in the end."""
    ally("new", "one", "--from", "photos", "--by-hand")
    ids = sorted(photos)
    ally("tell", "one", *(f"{id}={photos[id]}" for id in ids[:12]), "--annotator", "ann")
    ally("tell", "one", f"{ids[0]}=square", "--annotator", "bob")
    ally("skip", "one", ids[20], ids[21], "--annotator", "ann")
    ally("undo", "one", "--annotator", "ann")
    return {**{id: photos[id] for id in ids[:12]}, ids[0]: "square"}


def standing(place):
    with library.Campaign.open(place) as campaign:
        return campaign.labels(), campaign.status().skipped, campaign.status().annotators


@pytest.mark.parametrize("target", ["labels.csv", "labels.jsonl", "labels.parquet", "by-class"])
def test_round_trip(ally, told, photos, target):
    done = ally("export", "one", target)
    assert done.out == (
        f"{12 if target == 'by-class' else 13} {'labels' if target == 'by-class' else 'answers'} written to {target}\n"
    )
    ally("new", "two", "--from", "photos", "--classes", "disc,square", "--by-hand")
    skips = 0 if target == "by-class" else 1
    assert (
        ally("import", "two", target).out
        == f"12 labels and {skips} skip{'' if skips == 1 else 's'} imported from {target}\n"
    )
    labels, skipped, people = standing("two.db")
    assert labels == told == standing("one.db")[0]
    assert skipped == skips
    assert set(people) == ({"import"} if target == "by-class" else {"ann", "bob"})
    assert ally("import", "two", target, "--json").code == 0
    assert standing("two.db")[0] == told


def test_export_without_skips_and_as_json(ally, told):
    assert json.loads(ally("export", "one", "labels.csv", "--no-skips", "--json").out) == {
        "path": "labels.csv",
        "written": 12,
    }
    with open("labels.csv") as file:
        assert file.readline() == "id,label,annotator,at\n"


def test_links_save_space(ally, told, tmp_path):
    ally("export", "one", "by-class", "--link")
    files = list((tmp_path / "by-class").rglob("*.png"))
    assert len(files) == 12
    assert all(path.stat().st_nlink == 2 for path in files)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_the_record_has_every_answer(ally, told, ending):
    assert ally("export", "one", f"record.{ending}", "--record").out == f"16 answers written to record.{ending}\n"
    with open(f"record.{ending}", newline="") as file:
        lines = list(csv.DictReader(file)) if ending == "csv" else [json.loads(line) for line in file]
    assert [int(line["number"]) for line in lines] == list(range(1, 17))
    assert [line["kind"] for line in lines] == ["label"] * 13 + ["skip", "skip", "undo"]
    assert int(lines[-1]["undoes"]) == 15
    assert lines[12]["label"] == "square"
    assert lines[0]["at"].endswith("+00:00")
    before = standing("one.db")
    assert f"record.{ending} is the full history of a campaign" in ally("import", "one", f"record.{ending}", code=2).err
    assert standing("one.db") == before


def test_labels_that_look_like_formulas(ally, rows, tmp_path):
    ally("new", "free", "--from", "table.csv", "--by-hand")
    labels = {"r00": "=1+1", "r01": "@x", "r02": "true", "r03": True, "r04": "-2", "r05": -3, "r06": 1.5, "r07": "a,b"}
    with library.Campaign.open("free.db") as campaign:
        campaign.relabel(labels, annotator="ann")
    ally("export", "free", "labels.csv")
    with open("labels.csv", newline="") as file:
        assert not [row for row in csv.reader(file) if row[1].startswith(("=", "+", "@"))]
    ally("new", "again", "--from", "table.csv", "--by-hand")
    ally("import", "again", "labels.csv")
    found = standing("again.db")[0]
    assert found == labels
    assert [type(found[id]) for id in labels] == [type(label) for label in labels.values()]


def test_other_labels_of_the_same_file_are_named_by_annotator(ally, rows, tmp_path):
    (tmp_path / "mine.csv").write_text("id,label\nr00,low\n")
    ally("import", "rows", "mine.csv", "--annotator", "carl")
    assert standing("rows.db")[2] == {"carl": 1}


def test_numbers_for_regression(ally, table, tmp_path):
    ally("new", "size", "--from", "table.csv", "--regression", "--by-hand")
    ally("tell", "size", "r00=1.25", "r01=-3", "r02=2e3")
    ally("export", "size", "out.csv")
    ally("new", "again", "--from", "table.csv", "--regression", "--by-hand")
    ally("import", "again", "out.csv")
    assert standing("again.db")[0] == {"r00": 1.25, "r01": -3, "r02": 2000.0}


@pytest.mark.parametrize("declared", [True, False])
def test_numbers_come_back_from_a_folder(ally, photos, declared):
    options = ("--classes", "0,1") if declared else ()
    ally("new", "one", "--from", "photos", *options, "--by-hand")
    told = {id: int(shape == "disc") for id, shape in list(photos.items())[:6]}
    ally("tell", "one", *(f"{id}={label}" for id, label in told.items()), "--annotator", "ann")
    ally("export", "one", "by-class")
    ally("import", "one", "by-class")
    labels = standing("one.db")[0]
    assert labels == told
    assert {type(label) for label in labels.values()} == {int}


def test_spaces_around_a_class_do_not_matter(ally, rows, tmp_path):
    (tmp_path / "mine.csv").write_text("id,label\nr00,low \nr01, high\n")
    ally("import", "rows", "mine.csv")
    assert standing("rows.db")[0] == {"r00": "low", "r01": "high"}
