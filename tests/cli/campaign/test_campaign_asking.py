"""`ally new`, `ask`, `tell`, `skip`, `undo`: labelling from the command line."""

import csv
import inspect
import io
import json
import sys

import pytest

import ally as library
from ally.cli.campaign.new import new


def test_defaults_are_those_of_the_library():
    command, create = (inspect.signature(function).parameters for function in (new, library.Campaign.create))
    renamed = {
        "seed": ("random_state", lambda seed: seed),
        "lease": ("lease_seconds", lambda minutes: 60 * minutes),
        "by_hand": ("automatic", lambda by_hand: not by_hand),
    }
    for name in (
        "strategy",
        "objective",
        "model",
        "batch",
        "evaluate",
        "validation",
        "random_share",
        "budget",
        "policy",
        "opinions",
    ):
        assert command[name].default == create[name].default, name
    for name, (other, translate) in renamed.items():
        assert translate(command[name].default) == create[other].default, name


def test_new_says_what_was_found(ally, photos, tmp_path):
    (tmp_path / "photos" / "bad.png").write_bytes(b"not an image")
    done = ally(
        "new", "shapes", "--from", "photos", "--classes", "disc,square", "--evaluate", 8, "--validation", 4, "--by-hand"
    )
    assert done.out.startswith("shapes.db: 40 images of photos; classes disc, square\n")
    assert "8 random samples held out, never trained on, to measure the learning curve; 25% of each query" in done.out
    assert "4 random samples held out for early stopping" in done.out
    assert "1 problem:\n    bad.png: " in done.out
    assert done.out.endswith("next: ally ask shapes --out next.csv\n")
    assert (tmp_path / "shapes.db").is_file()


def test_new_as_json_with_labels_of_the_folder(ally, photos):
    found = json.loads(ally("new", "shapes.db", "--from", "photos", "--label", "folder", "--by-hand", "--json").out)
    assert (found["kind"], found["samples"], found["given"], found["classes"]) == ("images", 40, 40, None)
    assert (found["evaluate"], found["validate"], found["problems"]) == (0, 0, [])
    assert found["next"] == "ally ask shapes.db --out next.csv"


def test_new_without_a_curve_says_so(ally, photos):
    assert (
        "no samples are held out, so there will be no learning curve"
        in ally("new", "s", "--from", "photos", "--by-hand").out
    )


@pytest.mark.parametrize(
    ("source", "content", "options", "kind"),
    [
        ("notes.txt", "good\nbad\nfine\nawful\n", [], "4 texts"),
        ("notes.csv", "id,text\n1,good\n2,bad\n", [], "2 texts"),
        ("notes.csv", "key,remark\n1,good\n2,bad\n", ["--text", "remark", "--id-column", "key"], "2 texts"),
        ("houses.csv", "name,rooms,price\na,2,100\nb,3,150\n", ["--task", "regression", "--label", "price"], "2 rows"),
        ("latin.csv", "id,text\n1,caf\xe9\n2,bar\n".encode("latin-1"), ["--encoding", "latin-1"], "2 texts"),
        ("lines.jsonl", '{"id": "x", "a": 1}\n{"id": "y", "a": 2}\n', [], "2 rows"),
    ],
)
def test_sources(ally, tmp_path, source, content, options, kind):
    (tmp_path / source).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert f"c.db: {kind} of {source}" in ally("new", "c", "--from", source, *options, "--by-hand").out


def test_flat_folder_and_array(ally, photos, tmp_path):
    import numpy as np

    (tmp_path / "photos" / "top.png").write_bytes((tmp_path / "photos" / "discs" / "00.png").read_bytes())
    assert "1 image of photos" in ally("new", "flat", "--from", "photos", "--flat", "--by-hand").out
    np.save("X.npy", np.eye(6))
    (tmp_path / "ids.txt").write_text("a\nb\nc\nd\ne\nf\n")
    assert "6 rows of features of X.npy" in ally("new", "array", "--from", "X.npy", "--ids", "ids.txt", "--by-hand").out
    assert {row["id"] for row in ally("ask", "array", "--n", 6).rows} == set("abcdef")


def test_whole_numbers_are_classes(ally, table):
    found = json.loads(ally("new", "c", "--from", "table.csv", "--classes", "0, 1,2", "--by-hand", "--json").out)
    assert found["classes"] == [0, 1, 2]
    ally("tell", "c", "r00=1")
    ally("export", "c", "out.csv")
    with open("out.csv") as file:
        assert file.read().splitlines()[1].startswith("r00,1,")


def test_ask_prints_what_a_person_needs(ally, rows):
    done = ally("ask", "rows", "--n", 4, "--annotator", "ann")
    assert list(done.rows[0])[:6] == ["id", "label", "query", "kind", "predicted", "probability"]
    assert {"a", "town", "verdict", "size"} < set(done.rows[0])
    assert [row["label"] for row in done.rows] == [""] * 4
    assert {row["query"] for row in done.rows} == {"1"}
    assert "no model is trained yet" in done.err
    hidden = ally("ask", "rows", "--n", 4, "--no-show")
    assert "town" not in hidden.rows[0]
    assert not {row["id"] for row in done.rows} & {row["id"] for row in hidden.rows}


def test_ask_shows_images_and_texts(ally, photos, tmp_path):
    ally("new", "shapes", "--from", "photos", "--by-hand")
    row = ally("ask", "shapes", "--n", 1).rows[0]
    assert row["path"] == str((tmp_path / "photos" / row["id"]).resolve())
    (tmp_path / "notes.txt").write_text('=cmd|"x"\nplain\n')
    ally("new", "notes", "--from", "notes.txt", "--by-hand")
    assert {row["text"] for row in ally("ask", "notes", "--n", 2).rows} == {'\'=cmd|"x"', "plain"}


def test_ask_with_a_key_gives_the_same_query(ally, rows):
    first, second = (
        json.loads(ally("ask", "rows", "--n", 3, "--key", "k", "--annotator", "ann", "--json").out) for _ in range(2)
    )
    assert [sample["id"] for sample in first["samples"]] == [sample["id"] for sample in second["samples"]]
    assert first["query"] == second["query"] == 1
    assert first["annotator"] == "ann"
    assert first["until"].endswith("+00:00")
    assert set(first["samples"][0]) == {"id", "kind", "score", "why", "shown"}


def test_the_default_batch_shrinks_at_the_end_but_an_explicit_n_fails(ally, tmp_path):
    (tmp_path / "few.txt").write_text("a\nb\nc\n")
    ally("new", "few", "--from", "few.txt", "--by-hand")
    assert "3 samples are free and 9 were requested" in ally("ask", "few", "--n", 9, code=2).err
    assert len(ally("ask", "few").rows) == 3


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_query_file_is_filled_in_and_saved(ally, rows, fill, ending):
    done = ally("ask", "rows", "--n", 5, "--out", f"next.{ending}", "--annotator", "ann")
    assert done.out == ""
    assert f"then: ally tell rows next.{ending}" in done.err
    if ending == "csv":
        ids = fill("next.csv", rows, rows=3)
    else:
        with open("next.jsonl") as file:
            lines = [json.loads(line) for line in file]
        ids = [line["id"] for line in lines]
        for line in lines[:3]:
            line["label"] = rows[line["id"]]
        with open("next.jsonl", "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    done = ally("tell", "rows", f"next.{ending}")
    assert done.out == f"3 labels saved; 2 of query 1 still open: {ids[3]}, {ids[4]}\n"
    with library.Campaign.open("rows.db") as campaign:
        assert campaign.labels() == {id: rows[id] for id in ids[:3]}
        assert {answer.annotator for answer in campaign.answers.all()} == {"ann"}
        assert {answer.query for answer in campaign.answers.all()} == {1}
    again = json.loads(ally("tell", "rows", f"next.{ending}", "--json").out)
    assert again == {"labelled": 3, "skipped": 0, "query": 1, "waiting": ids[3:], "numbers": [1, 2, 3], "slips": []}


def test_ids_and_texts_that_a_spreadsheet_would_run_survive(ally, tmp_path):
    ids = ["=1+1", "@x", "-3", "'quoted", "a,b", 'say "hi"', "two\nlines", "über"]
    with open("odd.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "label", "skip", "query", "words"])
        lines.writerows([id, "old", "perhaps", "what is it?", f"={n}"] for n, id in enumerate(ids))
    ally("new", "odd", "--from", "odd.csv", "--by-hand", "--id-column", "id", "--label", "none")
    ally("ask", "odd", "--n", len(ids), "--out", "next.csv")
    with open("next.csv", newline="") as file:
        found = list(csv.reader(file))
    assert found[0][6:] == ["source.label", "source.skip", "source.query", "words"]
    risky = [cell for line in found for cell in line if cell.startswith(("=", "+", "-", "@"))]
    assert set(risky) <= {"-3"}  # a number is not run
    with open("next.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(found[0])
        lines.writerows([line[0], "yes", *line[2:]] for line in found[1:])
    assert ally("tell", "odd", "next.csv").out == "8 labels saved; query 1 is complete\n"
    with library.Campaign.open("odd.db") as campaign:
        assert campaign.labels() == dict.fromkeys(ids, "yes")


def test_tell_pairs_skip_and_undo(ally, rows):
    assert ally("tell", "rows", "r01=low", "r02=high", "--annotator", "ann").out == "2 labels saved\n"
    assert ally("skip", "rows", "r03", "r04", "--annotator", "ann").out == "2 skips saved\n"
    assert ally("undo", "rows", "--annotator", "ann").out == "undone: the skip of r04 (answer 4)\n"
    assert (
        ally("undo", "rows", "--annotator", "ann", "--number", 1).out == "undone: the label 'low' of r01 (answer 1)\n"
    )
    undone = json.loads(ally("undo", "rows", "--annotator", "ann", "--json").out)
    assert undone == {"id": "r03", "kind": "skip", "label": None, "number": 3}
    with library.Campaign.open("rows.db") as campaign:
        assert campaign.labels() == {"r02": "high"}


def test_pairs_split_at_the_last_equals_sign(ally, tmp_path):
    (tmp_path / "t.csv").write_text("id,text\na=1,x\nb,y\n")
    ally("new", "t", "--from", "t.csv", "--by-hand")
    ally("tell", "t", "a=1=yes", "b=3")
    with library.Campaign.open("t.db") as campaign:
        assert campaign.labels() == {"a=1": "yes", "b": 3}


@pytest.mark.parametrize(
    "text",
    [
        "id,label,skip\nr01,low,\nr02,,\nr03,,yes\n",
        "\ufeffid,label,skip\r\nr01,low,\r\nr02,,\r\nr03,,yes\r\n",
        '{"id": "r01", "label": "low"}\n{"id": "r02", "label": null}\n{"id": "r03", "skip": true}\n',
    ],
)
def test_tell_from_standard_input(ally, rows, text):
    assert ally("tell", "rows", "-", stdin=text).out == "1 label and 1 skip saved\n"
    with library.Campaign.open("rows.db") as campaign:
        assert campaign.labels() == {"r01": "low"}
        assert campaign.status().skipped == 1


def test_a_file_with_samples_of_two_queries_is_saved_without_a_query(ally, rows, fill):
    ids = [ally("ask", "rows", "--n", 2, "--out", f"{n}.csv") and fill(f"{n}.csv", rows) for n in (1, 2)]
    with open("both.csv", "w") as both, open("1.csv") as one, open("2.csv") as two:
        both.write(one.read() + two.read().split("\n", 1)[1])
    told = json.loads(ally("tell", "rows", "both.csv", "--json").out)
    assert (told["labelled"], told["query"], told["waiting"]) == (4, None, [])
    with library.Campaign.open("rows.db") as campaign:
        assert set(campaign.labels()) == {*ids[0], *ids[1]}


def test_a_key_makes_telling_happen_once(ally, rows):
    first = ally("tell", "rows", "r01=low", "--key", "k", "--annotator", "ann", "--json").out
    ally("tell", "rows", "r01=high", "--annotator", "ann")
    assert ally("tell", "rows", "r01=low", "--key", "k", "--annotator", "ann", "--json").out == first
    with library.Campaign.open("rows.db") as campaign:
        assert campaign.labels() == {"r01": "high"}


def test_a_long_table_shows_ids_only_where_rows_take_a_while_to_find(ally, rows, new_database, monkeypatch):
    from ally.cli.campaign import sample_columns

    monkeypatch.setattr(sample_columns, "LONG", 59)
    assert "town" in ally("ask", "rows", "--n", 1).rows[0], "where the rows are is kept in the cache folder"
    url = new_database()
    ally("new", url, "--from", "table.csv", "--by-hand")
    assert "town" in ally("ask", url, "--n", 1).rows[0]
    monkeypatch.setenv("ALLY_CACHE", "/dev/null/cache")
    done = ally("ask", url, "--n", 1)
    assert "town" not in done.rows[0]
    assert "finding rows in a table of 60 takes a while; --show adds the rows" in done.err
    assert "town" in ally("ask", url, "--n", 1, "--show").rows[0]


def test_ask_works_without_the_source(ally, photos, tmp_path):
    ally("new", "shapes", "--from", "photos", "--by-hand", "--batch", 40)
    (tmp_path / "photos" / "discs" / "00.png").unlink()
    done = ally("ask", "shapes", "--annotator", "ann", "--key", "k")
    assert len(done.rows) == 40
    assert done.err.count("cannot be shown") == 1
    (tmp_path / "photos").rename(tmp_path / "elsewhere")
    done = ally("ask", "shapes", "--annotator", "ann", "--key", "k")
    assert len(done.rows) == 40
    assert "only ids are listed, because the source cannot be opened" in done.err
    moved = ally("ask", "shapes", "--annotator", "ann", "--key", "k", "--from", "elsewhere")
    assert moved.rows[0]["path"].startswith(str(tmp_path / "elsewhere"))


def test_control_characters_are_not_printed(ally, tmp_path):
    (tmp_path / "t.jsonl").write_text(
        json.dumps({"id": "a\x1b[2J", "text": "x"}) + "\n" + json.dumps({"id": "b", "text": "y"}) + "\n"
    )
    ally("new", "t", "--from", "t.jsonl", "--by-hand")
    ally("tell", "t", "a\x1b[2J=yes")
    assert ally("undo", "t").out == "undone: the label 'yes' of a\\x1b[2J (answer 1)\n"


def test_closed_standard_input(ally, rows, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in ally("tell", "rows", "-", code=2).err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n \n")))
    assert "standard input is empty" in ally("tell", "rows", "-", code=2).err


def test_a_sheet_that_is_filled_in_is_not_overwritten(ally, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(f"text {n}" for n in range(12)))
    ally("new", "texts", "--from", "t.txt", "--by-hand")
    ally("ask", "texts", "--n", 2, "--out", "q.csv")
    ally("ask", "texts", "--n", 2, "--out", "q.csv")  # nothing was filled in
    sheet = (tmp_path / "q.csv").read_text().replace(",,", ",good,", 1)
    (tmp_path / "q.csv").write_text(sheet)
    assert (
        "holds 1 answer that the campaign does not have, such as 'good'"
        in ally("ask", "texts", "--out", "q.csv", code=2).err
    )
    assert (tmp_path / "q.csv").read_text() == sheet
    ally("tell", "texts", "q.csv")
    ally("ask", "texts", "--n", 2, "--out", "q.csv")
    (tmp_path / "mine.csv").write_text("my,own\n1,2\n")
    assert "was not written by `ally ask`" in ally("ask", "texts", "--out", "mine.csv", code=2).err


def test_a_sheet_with_semicolons_is_understood(ally, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(f"text {n}" for n in range(12)))
    ally("new", "my texts", "--from", "t.txt", "--by-hand")
    done = ally("ask", "my texts", "--n", 2, "--out", "q.csv")
    assert "ally tell 'my texts' q.csv" in " ".join(done.err.split())
    rows = list(csv.reader((tmp_path / "q.csv").read_text().splitlines()))
    lines = [";".join(row if place == 0 else [row[0], "good", *row[2:]]) for place, row in enumerate(rows)]
    (tmp_path / "q.csv").write_text("\n".join(lines))
    assert ally("tell", "my texts", "q.csv").out == "2 labels saved; query 1 is complete\n"
    assert ally("tell", "my texts", "q.csv").out == "2 labels saved (2 already saved); query 1 is complete\n"


def test_a_query_is_released(ally, rows):
    asked = ally("ask", "rows", "--annotator", "ann", "--n", 60).rows
    number = asked[0]["query"]
    assert "no sample is free" in ally("ask", "rows", "--annotator", "bob", "--n", 1, code=2).err
    ally("tell", "rows", f"{asked[0]['id']}=low", "--annotator", "ann")
    assert ally("release", "rows", number).out == f"59 samples of query {number} released\n"
    assert json.loads(ally("release", "rows", number, "--json").out) == {"query": int(number), "released": 0}
    assert len(ally("ask", "rows", "--annotator", "bob", "--n", 59).rows) == 59
    assert "query 99" in ally("release", "rows", 99, code=2).err


def test_a_likely_slip_is_saved_and_reported(ally, table):
    ally("new", "free", "--from", "table.csv", "--by-hand")
    assert ally("tell", "free", "r00=low", "r01=high").err == ""
    done = ally("tell", "free", "r02=Low", "r03=high")
    assert done.out == "2 labels saved\n"
    assert done.err == "note: 'Low' (of 'r02') is a different class from 'low'; if that is a typo, answer again\n"


def test_a_skip_that_is_not_saved_yet_is_not_overwritten(ally, rows, tmp_path):
    id = ally("ask", "rows", "--n", 1, "--annotator", "ann").rows[0]["id"]
    sheet = f"id,label,skip\n{id},,yes\n"
    (tmp_path / "q.csv").write_text(sheet)
    done = ally("ask", "rows", "--n", 1, "--out", "q.csv", code=2)
    assert (
        f"holds 1 answer that the campaign does not have, such as the skip of '{id}'; run `ally tell` on it first"
        in done.err
    )
    assert (tmp_path / "q.csv").read_text() == sheet
    ally("tell", "rows", "q.csv")
    ally("ask", "rows", "--n", 1, "--out", "q.csv")


@pytest.mark.parametrize("label", ["low", "low "])
def test_labels_that_were_outvoted_count_as_saved(ally, table, tmp_path, label):
    ally("new", "rows", "--from", "table.csv", "--policy", "majority", "--opinions", 3, "--by-hand")
    (tmp_path / "q.csv").write_text(f"id,label\nr00,{label}\n")
    ally("tell", "rows", "q.csv", "--annotator", "ann")
    for who in ("bob", "cat"):
        ally("tell", "rows", "r00=high", "--annotator", who)
    with library.Campaign.open("rows.db") as campaign:
        assert campaign.labels() == {"r00": "high"}
    ally("ask", "rows", "--n", 1, "--out", "q.csv", "--annotator", "ann")


def test_the_majority_of_numbers_is_the_median(ally, table):
    even = ("--from", "table.csv", "--policy", "majority", "--opinions", 2, "--by-hand")
    assert "opinions can tie" in ally("new", "classes", *even).out
    assert "opinions can tie" not in ally("new", "rows", *even, "--task", "regression").out
    assert "For numbers, the majority is the median" in " ".join(ally("new", "--help").out.replace("│", " ").split())
    for who, value in (("ann", "1.0"), ("bob", "1.2"), ("cat", "9.0")):
        ally("tell", "rows", f"r00={value}", "--annotator", who)
    ally("export", "rows", "labels.csv")
    with open("labels.csv", encoding="utf-8") as file:
        assert "r00,1.2," in file.read()


def test_when_all_is_labelled_the_next_step_is_printed(ally, tmp_path):
    (tmp_path / "few.txt").write_text("a\nb\n")
    ally("new", "few", "--from", "few.txt", "--by-hand")
    first, second = (row["id"] for row in ally("ask", "few", "--annotator", "ann").rows)
    assert (
        "no sample is free, 2 are reserved for someone; answer them"
        in ally("ask", "few", "--annotator", "bob", code=2).err
    )
    ally("tell", "few", f"{first}=x", "--annotator", "ann")
    ally("skip", "few", second, "--annotator", "ann")
    done = ally("ask", "few", "--n", 1, code=2)
    assert "nothing left to ask about: every sample is labelled or skipped; `ally export few labels.csv`" in done.err
    assert "`ally rescan few` looks for new samples" in done.err


def test_ids_that_begin_with_a_dash(ally, tmp_path):
    (tmp_path / "t.csv").write_text("id,text\n-1.png,x\n--n,y\nb,z\n")
    ally("new", "t", "--from", "t.csv", "--by-hand")
    ally("skip", "t", "--annotator", "ann", "--", "-1.png")
    ally("tell", "t", "--annotator", "ann", "--", "--n=yes")
    with library.Campaign.open("t.db") as campaign:
        assert (campaign.labels(), campaign.status().skipped) == ({"--n": "yes"}, 1)
    for command in ("skip", "tell"):
        assert "after --" in " ".join(ally(command, "--help").out.split())


def test_columns_of_the_source_do_not_make_a_sheet_a_record(ally, tmp_path):
    (tmp_path / "t.csv").write_text("id,undoes,kind\na,1,x\nb,2,y\n")
    ally("new", "t", "--from", "t.csv", "--column", "undoes=number", "--by-hand")
    ally("ask", "t", "--n", 1, "--out", "q.csv")
    ally("ask", "t", "--n", 1, "--out", "q.csv")
