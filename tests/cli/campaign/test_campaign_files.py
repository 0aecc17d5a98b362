"""`ally import` and `ally export`: exported files can be imported again."""

import csv
import json

import numpy as np
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
    ally("new", "size", "--from", "table.csv", "--task", "regression", "--by-hand")
    ally("tell", "size", "r00=1.25", "r01=-3", "r02=2e3")
    ally("export", "size", "out.csv")
    ally("new", "again", "--from", "table.csv", "--task", "regression", "--by-hand")
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


def test_the_columns_of_the_source_serve_for_labels(ally, tmp_path):
    lines = [f"n{n},the {'cat purrs' if n % 2 else 'dog barks'} in street {n} for quite a while," for n in range(20)]
    (tmp_path / "news.csv").write_text("\n".join(["article_id,body,topic", *lines]))
    ally("new", "news", "--from", "news.csv", "--label", "topic", "--by-hand", "--encoder", "none")
    (tmp_path / "made.csv").write_text("article_id;topic\nn0;dog\nn1;cat\n")
    assert "2 labels" in ally("import", "news", "made.csv").out
    (tmp_path / "other.csv").write_text("nr\tverdict\nn2\tdog\nn3\tcat\n")
    told = ally("tell", "news", "other.csv", code=2).err
    assert "has no column 'id'; it needs id and label, and has nr, verdict" in told
    assert "2 labels" in ally("tell", "news", "other.csv", "--id-column", "nr", "--label", "verdict").out
    ally("retrain", "news")
    ally("export", "news", "wide.csv", "--with-columns")
    rows = list(csv.DictReader((tmp_path / "wide.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["n0", "n1", "n2", "n3"]
    assert {"label", "predicted", "probability of cat", "probability of dog", "text"} < set(rows[0])
    assert float(rows[0]["probability of cat"]) + float(rows[0]["probability of dog"]) == pytest.approx(1, abs=2e-4)
    assert "4 answers written to tasks.json" in ally("export", "news", "tasks.json").out
    ally("new", "again", "--from", "news.csv", "--label", "topic", "--by-hand", "--encoder", "none")
    assert "4 labels" in ally("import", "again", "tasks.json").out


def test_a_folder_leaves_out_photos_that_are_gone_and_says_so(ally, photos, tmp_path):
    ally("new", "shapes", "--from", "photos", "--by-hand", "--encoder", "none")
    some = list(photos)[:3]
    ally("tell", "shapes", *(f"{id}={photos[id]}" for id in some))
    (tmp_path / "photos" / some[0]).unlink()
    done = ally("export", "shapes", "by-class")
    assert "2 labels written to by-class" in done.out
    assert "note: 1 image left out: missing from the source, or unreadable" in done.err


def test_disagreements_are_written_with_the_texts_and_settled_by_the_file(ally, tmp_path):
    (tmp_path / "t.txt").write_text("one cat\ntwo dogs\nthree owls\n")
    ally("new", "t", "--from", "t.txt", "--by-hand", "--opinions", 2, "--encoder", "none")
    ids = [row["id"] for row in ally("ask", "t", "--annotator", "ann").rows]
    ally("tell", "t", *(f"{id}=a" for id in ids), "--annotator", "ann")
    ally("tell", "t", f"{ids[0]}=a", f"{ids[1]}=b", "--annotator", "bob")
    assert "Krippendorff's alpha 0.00; they disagree on 1 sample" in ally("status", "t").out
    ally("review", "t", "--disagreements", "--out", "doubt.csv")
    (row,) = csv.DictReader((tmp_path / "doubt.csv").read_text().splitlines())
    assert row["text"] in ("one cat", "two dogs", "three owls")
    assert (row["by ann"], row["by bob"], row["adjudicates"]) == ("a", "b", "yes")
    ally("tell", "t", "doubt.csv", "--annotator", "eve")
    assert "annotators agree on all samples" in ally("review", "t", "--disagreements").err


def test_negative_numbers_in_sheets_are_numbers(ally, tmp_path):
    (tmp_path / "t.csv").write_text("id,a\nx,-1.32\ny,=2+2\n")
    ally("new", "t", "--from", "t.csv", "--by-hand", "--column", "a=category")
    assert {row["a"] for row in ally("ask", "t").rows} == {"-1.32", "'=2+2"}


def test_vectors_in_the_order_of_the_samples(ally, tmp_path):
    np.save(tmp_path / "V.npy", np.arange(12.0).reshape(4, 3))
    (tmp_path / "t.txt").write_text("one\ntwo\nthree\nfour\n")
    ally("new", "t", "--from", "t.txt", "--embeddings", "V.npy", "--by-hand")
    with library.Campaign.open("t.db") as campaign:
        two = next(sample.id for sample in campaign.source.samples.scan() if campaign.show(sample.id).text == "two")
        assert campaign.source.samples.features([two]).read(np.arange(1)).tolist() == [[3.0, 4.0, 5.0]]
    (tmp_path / "ids.txt").write_text("c\nb\na\n")
    (tmp_path / "s.csv").write_text("id,x\na,1\nb,2\nc,3\n")
    np.save(tmp_path / "W.npy", np.arange(3.0).reshape(3, 1))
    ally("new", "s", "--from", "s.csv", "--embeddings", "W.npy", "--ids", "ids.txt", "--by-hand")
    with library.Campaign.open("s.db") as campaign:
        assert campaign.source.samples.features(["a"]).read(np.arange(1)).tolist() == [[2.0]]
    told = ally("new", "u", "--from", "s.csv", "--embeddings", "V.npy", "--by-hand", code=2).err
    assert "there are 4 embeddings, and s.csv has 3 samples; give one for each" in told
    np.savez(tmp_path / "X.npz", X=np.arange(6.0).reshape(3, 2), ids=np.asarray(["p", "q", "r"]))
    assert "3 rows of features of X.npz" in ally("new", "x", "--from", "X.npz", "--by-hand").out


def test_files_without_a_header_and_in_other_encodings(ally, rows, tmp_path):
    (tmp_path / "plain.csv").write_text("r00,low\nr01,high\n")
    assert "say header=False (--no-header)" in ally("tell", "rows", "plain.csv", code=2).err
    assert "2 labels saved" in ally("tell", "rows", "plain.csv", "--no-header").out
    (tmp_path / "more.csv").write_bytes("low,r02,Köln\nhigh,r03,Ulm\n".encode("latin-1"))
    columns = ("--id-column", "column 2", "--label", "column 1", "--no-header")
    assert "is not utf-8" in ally("import", "rows", "more.csv", *columns, code=2).err
    assert "2 labels and" in ally("import", "rows", "more.csv", *columns, "--encoding", "latin-1").out
    assert "are for a file of answers" in ally("tell", "rows", "r04=low", "--no-header", code=2).err
    with library.Campaign.open("rows.db") as campaign:
        assert campaign.labels() == {"r00": "low", "r01": "high", "r02": "low", "r03": "high"}


def test_predict_reads_a_file_without_a_header(ally, tmp_path):
    lines = [f"{n},{'ab'[n % 2]},{['x', 'y'][n % 2]}" for n in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    ally("new", "t", "--from", "t.csv", "--no-header", "--label", "column 3", "--model", "linear", "--by-hand")
    ally("retrain", "t")
    (tmp_path / "new.csv").write_text("20,b\n21,a\n")
    found = ally("predict", "t", "new.csv", "--no-header").rows
    assert [row["label"] for row in found] == ["y", "x"]
    assert "--no-header is for new data" in ally("predict", "t", "--no-header", code=2).err


def test_status_has_the_agreement_on_each_of_several_classes(ally, tmp_path):
    (tmp_path / "t.txt").write_text("".join(f"text {n}\n" for n in range(6)))
    ally("new", "t", "--from", "t.txt", "--by-hand", "--opinions", 2, "--encoder", "none")
    with library.Campaign.open("t.db") as campaign:
        ids = [sample.id for sample in campaign.source.samples.scan()]
        for who, said in (("ann", "aabbcc"), ("bob", "aabbcb")):
            campaign.relabel(dict(zip(ids, said, strict=True)), annotator=who)
    line = next(line for line in ally("status", "t").out.splitlines() if line.startswith("annotators"))
    assert "alpha 0.77 (a 1.00, b 0.69, c 0.59)" in line
