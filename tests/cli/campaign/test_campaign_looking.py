"""`ally status`, `review`, `retrain`, `predict`, `rescan`: models and what they say, by real training."""

import csv
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import ally as library


def test_status_of_a_new_campaign(ally, rows):
    done = ally("status", "rows")
    assert done.out.startswith("rows.db: classification of table.csv, strategy margin\n\nGo on: ")
    assert "samples     60: 60 free" in done.out
    assert "labels      0 bought: 0 for training\n" in done.out
    assert "training    none yet; run `ally retrain rows`" in done.out


def test_status_counts_and_shows_the_curve(ally, tmp_path, table, fill):
    ally(
        "new",
        "rows",
        "--from",
        "table.csv",
        "--classes",
        "low,high",
        "--column",
        "a",
        "--evaluate",
        20,
        "--validation",
        5,
        "--batch",
        12,
        "--strategy",
        "margin",
        "--budget",
        90,
        "--model",
        "linear",
        "--by-hand",
    )
    for round in range(2):
        ally("ask", "rows", "--out", "next.csv", "--annotator", "ann")
        ids = fill("next.csv", table)
        ally("tell", "rows", "next.csv")
        line = ally("retrain", "rows").out
        assert line.startswith(f"model {round + 1}, trained on ")
        assert "accuracy " in line
        assert "95 % interval" in line
    other = {"low": "high", "high": "low"}[table[ids[0]]]
    ally("tell", "rows", f"{ids[0]}={other}", "--annotator", "bob")
    ally("skip", "rows", next(id for id in table if id not in ids))
    page, data = ally("status", "rows").out, json.loads(ally("status", "rows", "--json").out)
    assert page.index("Go on: ") < page.index("25 of 90 labels of the budget are spent") < page.index("samples ")
    assert "25 bought for 24 samples of a budget of 90" in page
    assert f"{data['evaluate']['labelled']} of 20 for the learning curve" in page
    assert f"{data['validate']['labelled']} of 5 for early stopping" in page
    assert data["training"] + data["evaluate"]["labelled"] + data["validate"]["labelled"] == data["labelled"]
    assert "ann 24, bob 1" in page
    assert "they disagree on 1 sample" in page
    assert "1 skipped" in page
    assert "training    done; 2 new answers since" in page
    assert [line["number"] for line in data["curve"]] == [1, 2]
    assert data["model"] == data["curve"][-1]
    header = next(line for line in page.splitlines() if line.split()[:1] == ["model"])
    assert header.split()[:3] == ["model", "labels", "accuracy"]
    assert data["comparison_sentence"] is None
    assert data["model"]["handed"] == data["labelled"] == 24
    assert "predictions come from a model trained on all 24 labels, held-out ones too" in page


def test_a_curve_by_cross_validation(ally, table):
    new = ally(
        "new", "rows", "--from", "table.csv", "--column", "a", "--evaluate", "cv", "--model", "linear", "--by-hand"
    )
    words = "by cross-validation on the labels that are chosen, which are not a random sample"
    assert words in " ".join(new.out.split())
    ally("tell", "rows", *(f"{id}={label}" for id, label in list(table.items())[:24]))
    on = "by cross-validation on the 24 labels that were chosen, which are not a random sample"
    assert on in ally("retrain", "rows").out
    page, data = ally("status", "rows").out, json.loads(ally("status", "rows", "--json").out)
    assert "labels      24 bought: 24 for training\n" in page
    assert f"accuracy is {on}" in page
    assert "the curve is cross-validated on the labels that were chosen" in page
    assert "cross-validated on" in next(line for line in page.splitlines() if line.startswith("model "))
    assert (data["model"]["by"], data["model"]["evaluated_on"], data["model"]["handed"]) == ("cv", 24, 24)
    said = " ".join(ally("predict", "rows").err.split())
    assert "note: the model is trained on all 24 labels: accuracy " in said
    assert on in said
    assert (
        "--evaluate few is neither a whole number nor cv"
        in ally("new", "other", "--from", "table.csv", "--evaluate", "few", code=2).err
    )


def test_status_shows_a_failed_training(ally, rows):
    ally("tell", "rows", *(f"{id}={label}" for id, label in list(rows.items())[:12]))
    os.rename("table.csv", "away.csv")
    assert "table.csv is missing" in ally("retrain", "rows", code=2).err
    page = ally("status", "rows").out
    assert "training    failed: " in page
    assert "`ally retrain rows` tries again" in page
    assert "WRONG: " in ally("doctor", "rows", code=2).out
    assert "model 2" in ally("retrain", "rows", "--from", "away.csv").out


def test_retrain_without_labels_and_with_one_class(ally, rows):
    assert "no labels to train on yet; the samples are ranked to cover the data" in ally("retrain", "rows").out
    assert "no model" not in ally("ask", "rows", "--n", 2).err
    ally("tell", "rows", "r00=low", "r01=low")
    line = json.loads(ally("retrain", "rows", "--json").out)
    assert line["number"] == 2
    assert line["labels"] == 2
    ally("new", "any", "--from", "table.csv", "--by-hand")
    ally("tell", "any", "r00=low", "r01=low")
    assert "all labels are low, but a classifier needs two classes" in ally("retrain", "any").out


def test_review_finds_a_wrong_label_and_takes_the_correction(ally, rows):
    wrong = "r05"
    told = [f"{id}={label}" for id, label in list(rows.items())[:40] if id != wrong]
    ally("tell", "rows", *told, f"{wrong}={'low' if rows[wrong] == 'high' else 'high'}", "--annotator", "ann")
    assert "there is no model yet" in ally("review", "rows").err
    ally("retrain", "rows")
    listed = json.loads(ally("review", "rows", "--n", 5, "--json").out)
    assert wrong in [line["id"] for line in listed]
    page = ally("review", "rows", "--n", 5).out.splitlines()
    assert page[0].split() == ["id", "label", "labelled_by", "predicted", "probability", "dual", "loss"]
    assert [line.split()[0] for line in page[1:]] == [line["id"] for line in listed]
    assert "town" in listed[0]["shown"]
    by_loss = json.loads(ally("review", "rows", "--n", 5, "--by", "loss", "--json").out)
    assert wrong in [line["id"] for line in by_loss]
    assert [line["loss"] for line in by_loss] == sorted((line["loss"] for line in by_loss), reverse=True)
    assert "'age' is not one of 'duals', 'loss'" in ally("review", "rows", "--by", "age", code=2).err
    done = ally("review", "rows", "--n", 5, "--out", "doubt.csv")
    assert done.out == ""
    table = pd.read_csv("doubt.csv")
    assert list(table["id"]) == [line["id"] for line in listed]
    table["label"] = table["id"].map(rows)
    table.to_csv("doubt.csv", index=False)
    assert ally("tell", "rows", "doubt.csv", "--annotator", "bob").out == f"{len(table)} labels saved\n"
    with library.Campaign.open("rows.db") as campaign:
        assert campaign.labels()[wrong] == rows[wrong]
    assert wrong not in [line["id"] for line in json.loads(ally("review", "rows", "--json").out)]


def test_predict_by_the_campaign_and_by_its_model(ally, labelled, tmp_path):
    rest = ally("predict", "rows")
    assert list(rest.rows[0]) == ["id", "label", "probability"]
    assert len(rest.rows) == 30
    assert sum(row["label"] == labelled[row["id"]] for row in rest.rows) >= 24
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rest.rows)
    exported = ally("export", "rows", "m", "--model")
    assert "1 model written to m.safetensors" in exported.out
    for said in (rest.err, exported.err):
        assert "note: the model is trained on all 30 labels; it is not measured" in " ".join(said.split())
    with open("table.csv", newline="") as file:
        lines = [{name: value for name, value in line.items() if name != "verdict"} for line in csv.DictReader(file)]
    with open("new.csv", "w", newline="") as file:
        sheet = csv.DictWriter(file, lines[0])
        sheet.writeheader()
        sheet.writerows(lines[:9])
    by_campaign, by_model = (ally("predict", name, "new.csv").rows for name in ("rows", "m.safetensors"))
    assert by_campaign == by_model
    assert [row["id"] for row in by_model] == [f"r{n:02}" for n in range(9)]
    for ending, read in (
        ("csv", pd.read_csv),
        ("jsonl", lambda path: pd.read_json(path, lines=True)),
        ("parquet", pd.read_parquet),
    ):
        assert (
            f"9 predictions written to out.{ending}"
            in ally("predict", "m.safetensors", "new.csv", "--out", f"out.{ending}").err
        )
        assert list(read(f"out.{ending}")["label"]) == [row["label"] for row in by_model]
    assert [line["id"] for line in json.loads(ally("predict", "m.safetensors", "new.csv", "--json").out)] == [
        row["id"] for row in by_model
    ]


def test_a_model_of_the_whole_pool_is_exported_as_a_plain_one(ally, labelled):
    ally("change", "rows", "--model", "graph")
    ally("retrain", "rows")
    whole = ally("export", "rows", "whole", "--model")
    assert "1 model written" in whole.out
    for name in ("linear", "trees"):
        plain = ally("export", "rows", name, "--model", "--as", name)
        assert "give the same label for" in " ".join(plain.err.split())
        ours, theirs = (
            ally("predict", file, "table.csv").rows for file in ("whole.safetensors", f"{name}.safetensors")
        )
        assert np.mean([a["label"] == b["label"] for a, b in zip(ours, theirs, strict=True)]) > 0.8
    assert "add --model" in ally("export", "rows", "x.csv", "--as", "linear", code=2).err
    assert "'forest' is not one of" in ally("export", "rows", "x", "--model", "--as", "forest", code=2).err


def test_regression_from_numbers_of_the_source(ally, table):
    ally(
        "new",
        "size",
        "--from",
        "table.csv",
        "--task",
        "regression",
        "--label",
        "size",
        "--column",
        "a",
        "--column",
        "b",
        "--evaluate",
        20,
        "--model",
        "linear",
        "--by-hand",
    )
    line = ally("retrain", "size").out
    assert "trained on 40 labels: r2 " in line
    page = ally("status", "size").out
    assert "0 bought, 60 came with the source: 40 for training, 20 of 20 for the learning curve" in page
    assert float(line.split("r2 ")[1].split()[0]) > 0.5
    assert "evaluation samples); mean: -0.0" in line
    head = next(line for line in page.splitlines() if line.startswith("model"))
    assert " ".join(head.split()) == "model labels r2 95 % interval evaluated on mean rmse mae agreement"
    ally("export", "size", "size.safetensors")
    with open("new.csv", "w") as file:
        file.write("id,a,b,c,town,verdict\nx,1.5,0,0,Ulm,?\ny,-1.5,0,0,Ulm,?\n")
    high, low = ally("predict", "size.safetensors", "new.csv").rows
    assert float(high["label"]) > 50 > float(low["label"])
    assert list(high) == ["id", "label", "beyond_labels"]


def test_figures_that_fit_rare_classes(ally, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)).round(3)
    lines = [f"s{n},{a},{b},{c},{'rare' if a > 1.2 else 'common'}" for n, (a, b, c) in enumerate(X.tolist())]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,b,c,kind", *lines]))
    ally("new", "t", "--from", "t.csv", "--label", "kind", "--evaluate", 40, "--by-hand", "--model", "mlp")
    assert "model 1, trained on 80 labels: accuracy " in ally("retrain", "t").out
    page = ally("status", "t")
    assert "note: the classes are uneven (common has " in page.err
    head = next(line for line in page.out.splitlines() if line.startswith("model"))
    assert "most common class" in head
    recall = page.out.split("class   recall")[1].splitlines()
    assert {line.split()[0] for line in recall[1:3]} == {"rare", "common"}
    ally("change", "t", "--metric", "balanced_accuracy")
    page = ally("status", "t")
    assert "uneven" not in page.err
    assert "balanced_accuracy" in page.out
    found = json.loads(ally("status", "t", "--json").out)
    assert found["model"]["constant"] == 0.5
    assert set(found["model"]["figures"]) == {"accuracy", "balanced_accuracy", "macro_f1", "auroc", "log_loss"}
    assert "--metric 'r2' is not a metric of classification" in ally("change", "t", "--metric", "r2", code=2).err
    every = ally("predict", "t", "t.csv", "--probabilities").rows
    assert list(every[0]) == ["id", "label", "probability", "probability of common", "probability of rare"]


def test_numbers_beyond_all_labels_are_marked(ally, tmp_path):
    rows = [f"s{n},{n / 10},{n / 5}" for n in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,y", *rows]))
    ally("new", "t", "--from", "t.csv", "--label", "y", "--task", "regression", "--by-hand", "--model", "mlp")
    ally("retrain", "t")
    (tmp_path / "new.csv").write_text("id,a\nnear,1.5\nfar,90\n")
    done = ally("predict", "t", "new.csv")
    assert [row["beyond_labels"] for row in done.rows] == ["", "yes"]
    assert "note: 1 of 2 predictions lie beyond all labels seen (0 to 5.8)" in done.err


def test_rescan(ally, photos, tmp_path):
    ally("new", "shapes", "--from", "photos", "--by-hand")
    (tmp_path / "photos" / "new.png").write_bytes((tmp_path / "photos" / "discs" / "00.png").read_bytes())
    (tmp_path / "photos" / "discs" / "01.png").unlink()
    (tmp_path / "photos" / "bad.png").write_bytes(b"?")
    done = ally("rescan", "shapes")
    assert done.out.startswith("1 new sample, 1 missing, 0 back\nproblems:\n  bad.png: ")
    (tmp_path / "photos" / "discs" / "01.png").write_bytes((tmp_path / "photos" / "discs" / "00.png").read_bytes())
    found = json.loads(ally("rescan", "shapes", "--json").out)
    assert (found["added"], found["gone"], found["back"], len(found["problems"])) == (0, 0, 1, 1)


def test_images_are_learned(ally, photos, fill):
    ally(
        "new",
        "shapes",
        "--from",
        "photos",
        "--classes",
        "disc,square",
        "--model",
        "mlp",
        "--size",
        16,
        "--batch",
        20,
        "--by-hand",
    )
    ally("ask", "shapes", "--out", "next.csv")
    fill("next.csv", photos)
    ally("tell", "shapes", "next.csv")
    ally("retrain", "shapes")
    asked = ally("ask", "shapes", "--n", 4).rows
    assert {row["predicted"] for row in asked} <= {"disc", "square"}
    assert all(0 < float(row["probability"]) <= 1 for row in asked)
    found = ally("predict", "shapes").rows
    assert len(found) == 20
    assert set(photos) > {row["id"] for row in found}


def trained(place, labels):
    """The status once there is a model trained on this many labels."""
    with library.Campaign.open(place) as campaign:
        for _ in range(600):
            found = campaign.status()
            if found.model is not None and found.model.labels == labels and found.training_state == "done":
                return found
            assert found.training_state != "failed", found.training_error
            time.sleep(0.1)
    raise AssertionError(f"no model within a minute: {found}")


def test_training_runs_beside_the_commands(table, tmp_path):
    """As a user does it: commands in processes of their own, which end at once."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def run(*words):
        command = [sys.executable, "-m", "ally", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
        assert done.returncode == 0, done.stderr

    run(
        "new",
        "rows",
        "--from",
        "table.csv",
        "--classes",
        "low,high",
        "--column",
        "a",
        "--batch",
        "10",
        "--strategy",
        "margin",
        "--model",
        "linear",
    )
    trained(tmp_path / "rows.db", 0)
    run("tell", "rows", *(f"{id}={label}" for id, label in list(table.items())[:10]))
    assert trained(tmp_path / "rows.db", 10).waiting == 0


def test_training_in_the_background_by_command(ally, rows):
    from ally.campaign.training import worker

    ally("tell", "rows", *(f"{id}={label}" for id, label in list(rows.items())[:10]))
    assert (
        ally("retrain", "rows", "--background").out
        == "training in the background; `ally status rows` shows the result\n"
    )
    assert trained("rows.db", 10).waiting == 0
    worker._children[str(Path("rows.db").absolute())].wait(60)


def test_a_campaign_on_a_server(ally, table, new_database):
    url = new_database()
    done = ally("new", url, "--from", "table.csv", "--classes", "low,high", "--by-hand")
    assert "60 rows of table.csv" in done.out
    assert "holds a campaign already" in ally("new", url, "--from", "table.csv", "--by-hand", code=2).err
    ally("tell", url, "r00=low", "r01=high")
    assert json.loads(ally("status", url, "--json").out)["labels"] == 2
    assert "use pg_dump" in ally("doctor", url, "--backup").out
    assert json.loads(ally("status", "campaign.backup-0001", "--json").out)["labels"] == 2


def test_samples_that_annotators_label_differently(ally, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(f"text {n}" for n in range(12)))
    ally("new", "texts", "--from", "t.txt", "--opinions", 2, "--by-hand")
    for who, label in (("ann", "good"), ("bob", "bad")):
        id = ally("ask", "texts", "--n", 1, "--annotator", who).rows[0]["id"]
        ally("tell", "texts", f"{id}={label}", "--annotator", who)
    assert "they disagree on 1 sample" in ally("status", "texts").out
    lines = ally("review", "texts", "--disagreements").out.splitlines()
    assert lines[0].split() == ["id", "label", "by", "ann", "by", "bob"]
    assert lines[1].split() == [id, "bad", "good", "bad"]
    [found] = json.loads(ally("review", "texts", "--disagreements", "--json").out)
    assert found.pop("text").startswith("text ")
    assert found == {"id": id, "label": "bad", "by ann": "good", "by bob": "bad"}
    ally("tell", "texts", f"{id}=bad", "--annotator", "ann")
    assert "agree on all samples" in ally("review", "texts", "--disagreements").err


def test_annotators_may_be_called_like_columns(ally, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(f"text {n}" for n in range(12)))
    ally("new", "texts", "--from", "t.txt", "--opinions", 3, "--by-hand")
    id = ally("ask", "texts", "--n", 1, "--annotator", "id").rows[0]["id"]
    for who, label in (("id", "good"), ("label", "bad"), ("skip", "odd")):
        ally("tell", "texts", f"{id}={label}", "--annotator", who)
    found = {"id": id, "label": "odd", "by id": "good", "by label": "bad", "by skip": "odd"}
    [printed] = json.loads(ally("review", "texts", "--disagreements", "--json").out)
    shown = {"text": printed["text"]}
    assert printed == found | shown
    assert ally("review", "texts", "--disagreements").out.splitlines()[1].split() == list(found.values())
    ally("review", "texts", "--disagreements", "--out", "differ.csv")
    with open("differ.csv", newline="") as file:
        [written] = csv.DictReader(file)
    assert {name: written[name] for name in printed} == printed


def test_few_numbers_have_no_interval_and_few_labels_no_prediction(ally, table):
    ally(
        "new",
        "size",
        "--from",
        "table.csv",
        "--task",
        "regression",
        "--column",
        "a",
        "--evaluate",
        3,
        "--batch",
        8,
        "--model",
        "linear",
        "--by-hand",
    )
    asked = ally("ask", "size").rows
    ally("tell", "size", *(f"{row['id']}={row['size']}" for row in asked))
    line = ally("retrain", "size").out
    assert re.search(r": rmse \S+, mae \S+; too few evaluation samples for r2\n", line), line
    lines = ally("review", "size").out.splitlines()
    assert lines[0].split()[-4:] == ["predicted", "probability", "dual", "loss"]
    assert all(len(line.split()) == 4 for line in lines[1:])


def test_unreadable_images_are_excluded_everywhere(ally, photos, tmp_path, fill):
    ally("new", "shapes", "--from", "photos", "--model", "mlp", "--size", 8, "--batch", 30, "--by-hand")
    ally("ask", "shapes", "--out", "next.csv")
    asked = fill("next.csv", photos)
    ally("tell", "shapes", "next.csv")
    broken = next(id for id in photos if id not in asked)
    data = bytearray((tmp_path / "photos" / broken).read_bytes())
    data[60:-12] = bytes(len(data) - 72)
    (tmp_path / "photos" / broken).write_bytes(bytes(data))
    ally("retrain", "shapes")
    found = json.loads(ally("status", "shapes", "--json").out)
    assert found["gone"] == 1
    assert found["problems"][0].startswith(f"{broken}: the image cannot be read")
    assert f"problems    {broken}: the image cannot be read" in ally("status", "shapes").out
    assert "0 back" in ally("rescan", "shapes").out
    assert broken not in [row["id"] for row in ally("predict", "shapes").rows]
    elsewhere = ally("predict", "shapes", "photos")
    assert broken not in [row["id"] for row in elsewhere.rows]
    assert f"{broken}: the image cannot be read" in elsewhere.err
