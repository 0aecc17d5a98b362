"""Labels of a campaign: one class whatever its type, imports in full and in order, no answer overruled, and counts that
match the labels."""

import os
import subprocess
import time
from collections import Counter
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from ally import SKIP, Campaign
from ally.campaign.training.data import gather
from ally.errors import AnswerError, InputError, LabelError


def frame(n=12, **columns):
    return pd.DataFrame({"id": [f"r{row}" for row in range(n)], "x": np.arange(n, dtype=float), **columns})


@pytest.fixture
def make(tmp_path):
    made = []

    def create(source=None, place="c.db", **settings):
        made.append(
            Campaign.create(
                tmp_path / place, frame() if source is None else source, evaluate=0, automatic=False, **settings
            )
        )
        return made[-1]

    yield create
    for campaign in made:
        campaign.close()


def test_equal_labels_of_different_types_are_one_class(make, tmp_path):
    campaign = make()
    campaign.relabel({"r0": 1, "r1": "1", "r2": 1.0, "r3": np.float32(1), "r4": " 1 ", "r5": "a"})
    assert [(type(label), label) for label in campaign.labels().values()] == [(int, 1)] * 5 + [(str, "a")]
    assert campaign.status().classes == {"1": 5, "a": 1}
    with Campaign.open(tmp_path / "c.db", frame()) as other:
        other.relabel({"r6": "1"})
    campaign.relabel({"r7": "1"})
    assert Counter(campaign.labels().values()) == {1: 7, "a": 1}


def test_declared_classes_match_labels_of_any_type(make, tmp_path):
    campaign = make(classes=[0, 1])
    pd.DataFrame({"id": ["r0", "r1", "r2"], "label": [0, 1, None]}).to_parquet(tmp_path / "labels.parquet")
    campaign.import_labels(tmp_path / "labels.parquet")
    campaign.relabel({"r2": "1 ", "r3": 1.0})
    assert campaign.labels() == {"r0": 0, "r1": 1, "r2": 1, "r3": 1}
    with pytest.raises(LabelError, match=r"'r4' is 1\.5, which is none of the classes 0, 1"):
        campaign.relabel({"r4": 1.5})


def test_source_labels_are_treated_like_answers(make, tmp_path):
    campaign = make(frame(5, truth=[1.0, 0.0, None, "1", " 0"]), label="truth")
    assert campaign.labels() == {"r0": 1, "r1": 0, "r3": 1, "r4": 0}
    (tmp_path / "t.jsonl").write_text('{"id": "a", "x": 1, "y": ["u", "v"]}\n{"id": "b", "x": 2, "y": "u"}\n')
    with pytest.raises(LabelError, match="'a'"):
        make(tmp_path / "t.jsonl", place="d.db", label="y")
    assert not (tmp_path / "d.db").exists()


@pytest.mark.parametrize("answers", [None, ["r1"], "r1", 3, [("r1", "cat")]])
def test_answers_of_the_wrong_type_are_refused(make, answers):
    with pytest.raises(AnswerError, match="pass labels by id"):
        make().relabel(answers)


def test_an_import_keeps_the_order_of_its_lines_and_the_people(make, tmp_path):
    campaign = make()
    lines = [
        "id,label,annotator,at",
        "r0,cat,ann,2025-01-01T00:00:00+00:00",
        "r2,cat,bob,2025-01-02T00:00:00+00:00",
        "r2,dog,ann,",
        "r3,owl,,",
    ]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    told = campaign.import_labels(tmp_path / "in.csv")
    assert (told.labelled, told.known, told.numbers) == (4, 0, (1, 2, 3, 4))
    assert [(answer.sample, answer.annotator) for answer in campaign.answers.all()] == [
        ("r0", "ann"),
        ("r2", "bob"),
        ("r2", "ann"),
        ("r3", "import"),
    ]
    assert campaign.labels() == {"r0": "cat", "r2": "dog", "r3": "owl"}
    assert campaign.import_labels(tmp_path / "in.csv").known == 4, "the same file again is on record again"
    (tmp_path / "bad.csv").write_text(f"id,label,annotator\nr5,cat,ann\nr6,dog,{'x' * 5000}\n")
    with pytest.raises(InputError, match="5000 characters"):
        campaign.import_labels(tmp_path / "bad.csv")
    assert "r5" not in campaign.labels(), "half of a file was taken"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_skips_come_back_with_who_and_when(make, tmp_path, ending):
    campaign = make()
    campaign.relabel({"r0": "cat", "r1": SKIP}, annotator="ann")
    campaign.export(tmp_path / f"out.{ending}")
    assert campaign.import_labels(tmp_path / f"out.{ending}").known == 2, "one's own export is new to the campaign"
    other = make(place="other.db")
    other.import_labels(tmp_path / f"out.{ending}")
    mine, theirs = (
        [(a.sample, a.annotator, a.kind, a.value, a.at) for a in one.answers.all()] for one in (campaign, other)
    )
    assert theirs == mine


def test_importing_an_export_changes_no_label(make, tmp_path):
    campaign = make()
    query = campaign.ask(4, annotator="ann")
    campaign.tell(query, {**dict.fromkeys(query.ids[:3], "cat"), query.ids[3]: SKIP})
    campaign.export(tmp_path / "out.csv")
    campaign.relabel({query.ids[0]: "dog"}, annotator="bob")
    assert campaign.import_labels(tmp_path / "out.csv").known == 4
    assert (campaign.labels()[query.ids[0]], len(list(campaign.answers.all()))) == ("dog", 5)


def test_a_class_told_twice_at_once_is_one_class_in_training(make, monkeypatch):
    campaign = make()
    monkeypatch.setattr(campaign._telling.vocabulary, "known", dict)
    campaign.relabel({"r0": 1, "r1": 2})
    campaign.relabel({"r2": "1", "r3": "2"})
    campaign.retrain()
    assert len(campaign.training.model().fit.classes) == 2


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-14:00", "1969-01-01T00:00:00+00:00"])
def test_times_out_of_range_are_refused(make, tmp_path, at):
    (tmp_path / "in.csv").write_text(f"id,label,at\nr0,cat,{at}\n")
    with pytest.raises(AnswerError, match="not between 1970 and 9998"):
        make().import_labels(tmp_path / "in.csv")


def test_a_rescan_keeps_answers_and_names_bad_labels(make, tmp_path):
    table = tmp_path / "t.csv"
    before = frame(6, truth=[None] * 6)
    before.to_csv(table, index=False)
    campaign = make(table, label="truth", classes=["cat", "dog"])
    frame(8, truth=[None, "cat", "cat", "bird", None, "cat", "dog", "bird"]).to_csv(table, index=False)

    def meanwhile(*_):
        with Campaign.open(tmp_path / "c.db") as other:
            other.relabel({"r5": "dog"}, annotator="ann")

    samples = campaign.source.samples
    scan = samples.scan

    def slow():
        yield from scan()
        meanwhile()

    samples.scan = slow
    found = campaign.source.rescan()
    assert (found.added, found.labelled) == (2, 3)
    assert campaign.labels() == {"r1": "cat", "r2": "cat", "r5": "dog", "r6": "dog"}
    assert [problem.split(":")[0] for problem in found.problems] == ["r3", "r7"]
    assert "none of the classes 'cat', 'dog'" in found.problems[0]


def test_status_counts_by_the_policy(make):
    campaign = make(policy="majority", opinions=3)
    for annotator, answers in {
        "ann": {"r0": "cat", "r1": "cat"},
        "bob": {"r0": "cat", "r1": "cat"},
        "eve": {"r0": "dog", "r1": SKIP, "r2": SKIP},
    }.items():
        campaign.relabel(answers, annotator=annotator)
    status = campaign.status()
    assert campaign.labels() == {"r0": "cat", "r1": "cat"}
    assert (status.labels, status.labelled) == (5, 2)  # each person's label is bought
    assert (status.skipped, status.classes, status.disagreements) == (1, {"cat": 2}, 1)


def test_the_majority_of_numbers_is_their_median(make, tmp_path):
    campaign = make(task="regression", policy="majority", opinions=3)
    said = {
        "ann": {"r0": 1.0, "r1": 2, "r2": 5.0},
        "bob": {"r0": 1.2, "r1": 4.0, "r2": 5.0},
        "eve": {"r0": 9.0, "r2": 5.0, "r3": SKIP},
    }
    for annotator, answers in said.items():
        campaign.relabel(answers, annotator=annotator)
    medians = {"r0": 1.2, "r1": 3.0, "r2": 5.0}
    assert campaign.labels() == medians
    campaign.export(tmp_path / "out.csv", skips=False)
    assert pd.read_csv(tmp_path / "out.csv").set_index("id")["label"].to_dict() == medians
    status = campaign.status()
    assert (status.labels, status.labelled, status.skipped, status.disagreements) == (8, 3, 1, 2)
    assert campaign.answers.disagreements() == {
        "r0": {"ann": 1.0, "bob": 1.2, "eve": 9.0},
        "r1": {"ann": 2.0, "bob": 4.0},
    }
    training = gather(campaign._store, campaign.source.samples, campaign.settings, 0).training
    assert dict(zip(training.ids, training.labels, strict=True)) == medians
    campaign.change(policy="last")
    assert campaign.labels() == {"r0": 9.0, "r1": 4.0, "r2": 5.0}
    with pytest.raises(InputError, match="policy='median' is unknown; use 'last' or 'majority'"):
        campaign.change(policy="median")


def test_labels_bought_exclude_those_of_the_source(make):
    campaign = make(frame(6, truth=["cat", "dog", "cat", None, None, None]), label="truth")
    campaign.relabel({"r3": "cat", "r0": SKIP, "r1": "cat"}, annotator="ann")
    status = campaign.status()
    assert (status.given, status.labels) == (1, 2)


def test_open_samples_with_several_opinions(make):
    campaign = make(opinions=2)
    first = campaign.ask(12, annotator="ann")
    campaign.tell(first, dict.fromkeys(first.ids, "cat"))
    second = campaign.ask(3, annotator="bob")
    told = campaign.tell(second, {second.ids[0]: "dog"})
    assert list(told.waiting) == second.ids[1:]
    assert list(campaign.tell(second, {second.ids[1]: "dog"}, annotator="eve").waiting) == second.ids[2:], (
        "eve's was the second opinion"
    )


def test_an_answer_by_someone_else_leaves_the_query_open(make):
    campaign = make(opinions=2)
    query = campaign.ask(2, annotator="ann")
    told = campaign.tell(query, {query.ids[0]: "dog"}, annotator="bob")
    assert list(told.waiting) == query.ids


def test_classes_declared_later_must_include_all_labels(make):
    campaign = make()
    campaign.relabel({"r0": "cat", "r1": "1", "r2": "bird"})
    with pytest.raises(LabelError, match="labelled 'bird', which is not among the classes"):
        campaign.change(classes=["cat", 1])
    campaign.relabel({"r2": "cat"})
    assert list(campaign.classes) == ["cat", "1"]
    assert campaign.change(classes=["cat", 1, 2]).classes == ("cat", "1", 2), (
        "a class is another than the labels that read like it"
    )
    campaign.relabel({"r1": 1}, annotator="bob")
    assert (campaign.labels()["r1"], campaign.status().disagreements, list(campaign.classes)) == (
        "1",
        0,
        ["cat", "1", 2],
    )


def test_no_change_of_settings_is_lost(make, tmp_path):
    campaign = make()
    with Campaign.open(tmp_path / "c.db", frame()) as other:
        kept = campaign.settings
        other.change(batch=7)
        assert kept.batch != 7
        campaign.change(budget=50)
        assert (other.settings.batch, other.settings.budget) == (7, 50)


@pytest.mark.parametrize("error", [BlockingIOError("no more processes"), OSError("too many open files")])
def test_labels_are_saved_even_if_training_cannot_start(table, tmp_path, monkeypatch, error):
    path, truth = table
    with Campaign.create(tmp_path / "c.db", path, batch=2, evaluate=0, automatic=False) as campaign:
        campaign.change(automatic=True)

        def fails(*_, **__):
            raise error

        monkeypatch.setattr(subprocess, "Popen", fails)
        told = campaign.relabel(dict(list(truth.items())[:6]))
        assert (told.labelled, len(campaign.labels())) == (6, 6)


def test_a_training_does_not_import_from_the_current_folder(table, tmp_path, monkeypatch):
    path, truth = table
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queue.py").write_text("raise RuntimeError('not the queue of Python')\n")
    with Campaign.create("c.db", path, batch=2, evaluate=0, model="linear", automatic=False) as campaign:
        campaign.relabel(dict(list(truth.items())[:6]))
        campaign.retrain(wait=False)
        os.chdir("/")
        end = time.monotonic() + 120
        while not campaign.training.has_model and time.monotonic() < end:
            time.sleep(0.2)
        assert campaign.training.has_model
        assert campaign.show("s001").id == "s001", "a relative name went with the current folder"


def test_the_source_annotator_name_is_reserved(make):
    campaign = make()
    for refuses in (
        lambda: campaign.ask(1, annotator="source"),
        lambda: campaign.relabel({"r0": "cat"}, annotator="source"),
        lambda: campaign.import_labels("labels.csv", annotator="source"),
    ):
        with pytest.raises(InputError, match="use another name"):
            refuses()


def test_untold_lists_answers_not_on_record(make):
    campaign = make(policy="majority", opinions=3)
    for annotator, label in (("ann", "cat"), ("bob", "cat"), ("eve", "dog")):
        campaign.relabel({"r0": label, "r1": 3}, annotator=annotator)
    campaign.relabel({"r2": SKIP})
    assert campaign.answers.untold({"r0": "dog ", "r1": "3", "r2": SKIP}) == []
    assert campaign.answers.untold({"r0": "owl", "r1": SKIP, "r2": "cat", "r3": SKIP}) == ["r0", "r1", "r2", "r3"]
    assert campaign.answers.untold({"r0": "cat", "nobody": "cat", "r1": 3, "no one": SKIP}) == ["nobody", "no one"]


def test_huge_targets_are_refused(make):
    campaign = make(task="regression")
    for label in (1e200, -1e151, 10**400):
        with pytest.raises(LabelError, match="'r0'"):
            campaign.relabel({"r0": label})
    campaign.relabel({"r0": 3})
    assert [type(label) for label in campaign.labels().values()] == [float]


def test_the_count_of_labels_keeps_up_with_every_kind_of_answer(make):
    """The page counts only what is new; `status` counts everything."""
    rng = np.random.default_rng(0)
    campaign = make(frame(label=["a", "b", *[None] * 10]), label="label", classes=["a", "b"])
    for _ in range(60):
        who, id = f"person{rng.integers(3)}", f"r{rng.integers(12)}"
        match rng.integers(4):
            case 0:
                campaign.skip([id], annotator=who)
            case 1:
                with suppress(AnswerError):
                    campaign.undo(annotator=who)
            case _:
                campaign.relabel({id: str(rng.choice(["a", "b"]))}, annotator=who)
        if rng.random() < 0.5:
            assert campaign.page.label_count() == campaign.status().labels
    assert campaign.page.label_count() > 5


LABELS_IN_MEMORY = {
    "pairs": [(1, "no"), (np.int64(2), "yes"), ("3", None)],
    "a dictionary": {"1": "no", 2.0: "yes", 3: float("nan")},
    "a series": pd.Series(["no", "yes", None], index=[1, 2, 3]),
    "a frame": pd.DataFrame({"id": [1, 2, 3], "label": ["no", "yes", None]}),
    "a frame with its index": pd.DataFrame({"label": ["no", "yes", None]}, index=[1, 2, 3]),
}


@pytest.mark.parametrize("kind", LABELS_IN_MEMORY)
def test_labels_are_imported_from_memory(make, kind):
    campaign = make(np.arange(12.0).reshape(6, 2))
    told = campaign.import_labels(LABELS_IN_MEMORY[kind])
    assert told.labelled == 2
    assert campaign.labels() == {1: "no", 2: "yes"}


def test_named_columns_of_a_frame_in_memory_are_labels(make):
    campaign = make(np.arange(12.0).reshape(6, 2))
    rows = pd.DataFrame({"who": [1, 2], "what": ["no", "yes"]})
    campaign.import_labels(rows, id_column="who", label="what")
    assert campaign.labels() == {1: "no", 2: "yes"}


def test_what_holds_no_labels_in_memory_is_refused(make):
    campaign = make(np.arange(12.0).reshape(6, 2))
    for given, words in (
        ([1, 2], r"1 is not a pair; pass labels as \[\(id, label\), …\]"),
        (7, "the labels are of type int; pass a file, a folder"),
        ({}, "there is no label in what you pass"),
        ({1: None}, "there is no label in what you pass"),
        ({17: "no"}, "17"),
        ([(1, "no"), ("1", "yes")], "answered 2 times"),
        (pd.DataFrame({"id": [1], "kind": ["no"]}), "the frame has no column 'label'; its columns are id, kind"),
    ):
        with pytest.raises(InputError, match=words):
            campaign.import_labels(given)
    with pytest.raises(InputError, match="of type dict: leave them out"):
        campaign.import_labels({1: "no"}, id_column="id")
    assert campaign.labels() == {}
