"""Ask, tell and the calls around them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ally
from ally import Campaign
from ally.errors import (
    AnswerError,
    DataError,
    IdError,
    InputError,
    LabelError,
    PoolExhausted,
    StoreExists,
    StoreMissing,
)


@pytest.fixture
def campaign(table, tmp_path, clock):
    source, _ = table
    with Campaign.create(tmp_path / "digits.db", source, batch=10, automatic=False, clock=clock) as made:
        yield made


def test_ask_gives_n_samples_with_ids_of_the_source(campaign, table):
    query = campaign.ask(12, annotator="ann")
    assert len(query) == 12
    assert len(set(query.ids)) == 12
    assert set(query.ids) <= set(table[1])
    assert len(campaign.ask(annotator="ann")) == 10  # a batch


def test_the_same_key_gives_the_same_query_and_a_new_key_never_a_leased_sample(campaign, clock):
    first = campaign.ask(10, annotator="ann", key="k1")
    assert campaign.ask(10, annotator="ann", key="k1") == first
    others = [campaign.ask(10, annotator=who, key="k1") for who in ("bob", "cem")]
    seen = [id for query in (first, *others) for id in query.ids]
    assert len(seen) == len(set(seen))
    clock.now += campaign.settings.lease_seconds + 1
    assert set(campaign.ask(290, annotator="dan", at_most=True).ids) & set(first.ids)


def test_partial_answers_late_answers_and_skips(campaign, table, clock):
    truth = table[1]
    query = campaign.ask(4, annotator="ann")
    a, b, c, d = query.ids
    told = campaign.tell(query.id, {a: truth[a], b: ally.SKIP})
    assert (told.labelled, told.skipped, set(told.waiting)) == (1, 1, {c, d})
    clock.now += 10 * campaign.settings.lease_seconds
    assert campaign.tell(query, {c: truth[c], d: truth[d]}).waiting == ()
    assert campaign.labels() == {id: truth[id] for id in (a, c, d)}
    again = campaign.tell(query, {c: truth[c]})
    assert (again.numbers, again.known) == ((3,), 1)  # told before: nothing new


def test_an_answers_annotator_defaults_to_whoever_asked(campaign):
    query = campaign.ask(2, annotator="ann")
    campaign.tell(query.id, {query.ids[0]: "x"})
    campaign.tell(query.id, {query.ids[1]: "x"}, annotator="bob")
    assert [answer.annotator for answer in campaign.answers.all()] == ["ann", "bob"]


def test_relabel_skip_and_undo_are_on_record(campaign):
    campaign.relabel({"s001": "digit 1"}, annotator="ann")
    campaign.relabel({"s001": "digit 2"}, annotator="ann")
    campaign.skip(["s002"], annotator="ann")
    assert campaign.labels() == {"s001": "digit 2"}
    undone = campaign.undo(annotator="ann")
    assert (undone.id, undone.label) == ("s002", ally.SKIP)
    assert campaign.undo(annotator="ann").label == "digit 2"
    assert campaign.labels() == {"s001": "digit 1"}
    assert [answer.kind for answer in campaign.answers.all()] == ["label", "label", "skip", "undo", "undo"]
    with pytest.raises(AnswerError, match="list of ids"):
        campaign.skip("s003")


def test_released_samples_are_free_at_once(campaign):
    query = campaign.ask(270, annotator="ann")
    with pytest.raises(PoolExhausted):
        campaign.ask(50, annotator="bob")
    assert campaign.release(query) == 270
    assert len(campaign.ask(50, annotator="bob")) == 50


def test_a_reopened_campaign_has_all_its_state(table, tmp_path, clock):
    place = tmp_path / "digits.db"
    with Campaign.create(place, table[0], automatic=False, clock=clock) as campaign:
        query = campaign.ask(5, annotator="ann", key="k")
        campaign.tell(query.id, {query.ids[0]: "x"})
        shown = campaign.show(query.ids[1])
    with Campaign.open(place, clock=clock) as campaign:
        assert campaign.ask(5, annotator="ann", key="k").ids == query.ids[1:]
        assert campaign.show(query.ids[1]) == shown
        assert campaign.labels() == {query.ids[0]: "x"}
    with pytest.raises(StoreExists):
        Campaign.create(place, table[0])
    with pytest.raises(StoreMissing):
        Campaign.open(tmp_path / "other.db")


def test_a_campaign_in_postgresql(table, new_database, answer_all):
    url = new_database()
    with Campaign.create(url, table[0], batch=10, model="linear", automatic=False) as campaign:
        for _ in range(3):
            answer_all(campaign, table[1])
        campaign.retrain()
    with Campaign.open(url) as campaign:
        assert campaign.status().model.labels >= 20
        assert len(campaign.ask(10)) == 10


def test_store_and_source_can_be_moved_together_or_the_source_be_named(table, tmp_path):
    home = tmp_path / "here"
    home.mkdir()
    source = shutil.copy(table[0], home / "digits.csv")
    Campaign.create(home / "digits.db", source, automatic=False).close()
    home.rename(tmp_path / "there")
    with Campaign.open(tmp_path / "there" / "digits.db") as campaign:
        assert campaign.show("s000").columns
    (tmp_path / "there" / "digits.csv").rename(tmp_path / "elsewhere.csv")
    with Campaign.open(tmp_path / "there" / "digits.db") as campaign:
        assert len(campaign.ask(3)) == 3  # asking does without the source
        with pytest.raises(DataError, match=r"is missing; bring it back, or say where it is now"):
            campaign.show("s000")
    with Campaign.open(tmp_path / "there" / "digits.db", tmp_path / "elsewhere.csv") as campaign:
        assert campaign.show("s000").columns
    other = pd.read_csv(tmp_path / "elsewhere.csv").assign(id=[f"t{n}" for n in range(300)])
    other.to_csv(tmp_path / "other.csv", index=False)
    with Campaign.open(tmp_path / "there" / "digits.db") as campaign:
        with pytest.raises(InputError, match=r"other.csv has none of the campaign's samples, such as 's000'"):
            campaign.source.move(tmp_path / "other.csv")
        campaign.source.move(tmp_path / "elsewhere.csv")
    with Campaign.open(tmp_path / "there" / "digits.db") as campaign:
        assert campaign.show("s000").columns


def test_held_out_samples_are_asked_about_until_they_are_labelled(table, tmp_path, answer_all):
    with Campaign.create(tmp_path / "d.db", table[0], evaluate=12, validation=6, batch=8, automatic=False) as campaign:
        kinds: Counter[str] = Counter()
        for turn in range(20):
            query = campaign.ask(8)
            kinds.update(sample.kind for sample in query.samples)
            campaign.tell(query, {id: table[1][id] for id in query.ids})
            if turn == 3:
                assert kinds == {"active": 24, "evaluate": 5, "validate": 3}
        assert kinds == {"active": 142, "evaluate": 12, "validate": 6}
        status = campaign.status()
        assert (status.training, status.evaluate.labelled, status.validate.labelled, status.labels) == (142, 12, 6, 160)


def test_queries_of_one_sample_mix_all_kinds(table, tmp_path):
    with Campaign.create(
        tmp_path / "d.db", table[0], evaluate=10, validation=10, random_share=0.2, automatic=False
    ) as campaign:
        kinds = Counter(campaign.ask(1).samples[0].kind for _ in range(100))
    assert kinds["evaluate"] == kinds["validate"] == 10
    assert 12 <= kinds["random"] <= 20


def test_evaluation_by_default_is_a_tenth_and_none_of_a_small_pool(table, photos, tmp_path):
    with Campaign.create(tmp_path / "a.db", table[0], automatic=False) as campaign:
        assert campaign.settings.evaluate == 30
        assert campaign.status().evaluate.samples == 30
    with Campaign.create(tmp_path / "b.db", photos[0], automatic=False) as campaign:
        assert campaign.settings.evaluate == 0


def test_labels_of_the_source_count_as_given(tmp_path):
    frame = pd.DataFrame(
        {"id": [f"r{n}" for n in range(40)], "a": np.arange(40.0), "kind": ["x", "y", None, None] * 10}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    with Campaign.create(
        tmp_path / "t.db", tmp_path / "t.csv", label="kind", classes=["x", "y"], evaluate=8, automatic=False
    ) as campaign:
        status = campaign.status()
        assert (status.given, status.labels, status.classes) == (20, 0, {"x": 10, "y": 10})
        assert status.evaluate.samples == 8  # drawn from all samples, labelled or not
        assert "r0" in campaign.labels()
        assert {answer.annotator for answer in campaign.answers.all()} == {"source"}
    with pytest.raises(LabelError, match=r"label of 'r1' is 'y', which is none of the classes"):
        Campaign.create(tmp_path / "u.db", tmp_path / "t.csv", label="kind", classes=["x", "z"])
    assert not (tmp_path / "u.db").exists()


def test_opinions_of_several_and_their_majority(table, tmp_path):
    with Campaign.create(
        tmp_path / "d.db", table[0], opinions=3, policy="majority", evaluate=0, automatic=False
    ) as campaign:
        given = {"ann": "x", "bob": "y", "cem": "x"}
        for who, label in given.items():
            query = campaign.ask(1, annotator=who)
            campaign.tell(query, {query.ids[0]: label})
        assert campaign.labels() == {query.ids[0]: "x"}
        assert campaign.answers.disagreements() == {query.ids[0]: given}
        assert campaign.status().disagreements == 1
        assert campaign.ask(1, annotator="dan").ids != query.ids


@pytest.mark.parametrize(
    ("answers", "error", "match"),
    [
        ({"nobody": "digit 0"}, IdError, "unknown"),
        ({"s000": None}, LabelError, "None"),
        ({"s000": float("nan")}, LabelError, "nan"),
        ({"s000": ["a"]}, LabelError, "a text, a number"),
        ({"s000": "digit 7"}, LabelError, "none of the classes"),
        ({}, AnswerError, "no answers"),
        ({"../etc/passwd": "digit 0"}, IdError, "unknown"),
    ],
)
def test_one_bad_answer_refuses_all(table, tmp_path, answers, error, match):
    with Campaign.create(
        tmp_path / "d.db", table[0], classes=["digit 0", "digit 1", "digit 2"], automatic=False
    ) as campaign:
        with pytest.raises(error, match=match):
            campaign.relabel({**({"s001": "digit 1"} if answers else {}), **answers})
        assert list(campaign.answers.all()) == []


def test_answers_must_fit_their_query(campaign):
    query = campaign.ask(2, annotator="ann")
    stray = next(id for id in ("s000", "s001", "s002") if id not in query.ids)
    with pytest.raises(AnswerError, match="not for query 1"):
        campaign.tell(query, {stray: "x"})
    with pytest.raises(AnswerError, match="there is no query 7"):
        campaign.tell(7, {stray: "x"})


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"task": "clustering"}, "task='clustering'"),
        ({"classes": ["a"]}, "at least two"),
        ({"classes": ["a", "a"]}, "read alike"),
        ({"classes": "ab"}, "list of all classes"),
        ({"classes": ["a", "b"], "task": "regression"}, "leave one out"),
        ({"batch": 0}, "batch=0"),
        ({"evaluate": -1}, "evaluate=-1"),
        ({"evaluate": 1000}, "1000 were requested"),
        ({"random_share": 1.0}, "random_share=1.0"),
        ({"random_share": 0.8}, "add up to 1.05"),
        ({"held_out_share": 0.0, "evaluate": 10}, "the share of queries for them is 0"),
        ({"lease_seconds": 0}, "lease_seconds=0"),
        ({"policy": "first"}, "policy='first'"),
        ({"strategy": "alley"}, "did you mean 'ally'"),
        ({"strategy": "entropy", "task": "regression"}, "regression"),
        ({"objective": "best"}, "unknown objective"),
        ({"model": "gpt"}, "unknown model"),
        ({"budget": 0}, "budget=0"),
        ({"colour": "red"}, "colour= is not known"),
        ({"id_column": "key"}, "key"),
    ],
)
def test_bad_settings_are_named_and_create_nothing(table, tmp_path, settings, match):
    with pytest.raises(InputError, match=match):
        Campaign.create(tmp_path / "d.db", table[0], **settings)
    assert list(tmp_path.iterdir()) == [table[0]]


def test_asking_and_telling_do_not_import_torch(table, tmp_path):
    Campaign.create(tmp_path / "d.db", table[0], automatic=False).close()
    (tmp_path / "texts.txt").write_text("".join(f"text number {number}\n" for number in range(30)))
    code = (
        "import sys, ally; from ally import Campaign\n"
        "with Campaign.create('t.db', 'texts.txt', encoder='all-MiniLM-L6-v2', automatic=False) as c:\n"
        "    assert c.settings.encoder; q = c.ask(3); c.tell(q, {id: 'x' for id in q.ids})\n"
        "    c.show(q.ids[0]); c.status()\n"
        "assert 'transformers' not in sys.modules\n"
        f"with Campaign.open({str(tmp_path / 'd.db')!r}) as c:\n"
        "    q = c.ask(3); c.tell(q, {id: 'x' for id in q.ids}); c.undo(); c.show(q.ids[0]); c.status(); c.review(); "
        "c.export('l.csv')\n"
        "    c.change(batch=5); c.change(strategy='margin', objective='pdcl', model='linear')\n"
        f"try: Campaign.create('e.db', {str(table[0])!r}, strategy='margni')\n"
        "except ally.errors.UnknownName as error: assert \"did you mean 'margin'\" in str(error)\n"
        f"Campaign.create('f.db', {str(table[0])!r}, strategy='badge', objective='erm', model='mlp').close()\n"
        "from ally.cli.app import app\n"
        f"app(['new', 'g', '--from', {str(table[0])!r}, '--strategy', 'badge', '--by-hand'], standalone_mode=False)\n"
        "app(['change', 'g', '--strategy', 'margin', '--model', 'linear'], standalone_mode=False)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path).returncode == 0
    assert (tmp_path / "l.csv").read_text().startswith("id,label,annotator,at\n")


def test_exported_labels_can_be_imported(table, tmp_path):
    with Campaign.create(tmp_path / "x.db", table[0], automatic=False) as campaign:
        campaign.relabel({"s000": "digit 0", "s001": "=cmd()"}, annotator="ann")
        campaign.relabel({"s002": "digit 2"}, annotator="bob")
        campaign.skip(["s003"], annotator="bob")
        for ending in ("csv", "jsonl", "parquet"):
            assert campaign.export(tmp_path / f"labels.{ending}") == 4
        before = (
            campaign.labels(),
            [(answer.annotator, answer.at) for answer in campaign.answers.all() if answer.kind == "label"],
        )
    for ending in ("csv", "jsonl", "parquet"):
        with Campaign.create(tmp_path / f"{ending}.db", table[0], automatic=False) as campaign:
            told = campaign.import_labels(tmp_path / f"labels.{ending}")
            assert (told.labelled, told.skipped) == (3, 1)
            after = (
                campaign.labels(),
                [(answer.annotator, answer.at) for answer in campaign.answers.all() if answer.kind == "label"],
            )
            assert after[0] == before[0]
            assert sorted(after[1]) == sorted(before[1])
            again = campaign.import_labels(tmp_path / f"labels.{ending}")
            assert set(again.numbers) <= set(told.numbers)


def test_an_import_is_all_or_nothing(campaign, tmp_path):
    (tmp_path / "l.csv").write_text("id,label\ns000,x\nnobody,y\n")
    with pytest.raises(IdError, match="'nobody'"):
        campaign.import_labels(tmp_path / "l.csv")
    (tmp_path / "m.csv").write_text("id,label,at\ns000,x,yesterday\n")
    with pytest.raises(AnswerError, match="the time 'yesterday'"):
        campaign.import_labels(tmp_path / "m.csv")
    (tmp_path / "o.csv").write_text("id,label,annotator\ns000,x,ann\ns001,y,bob\ns001,z,bob\n")
    with pytest.raises(AnswerError, match="answered 2 times"):
        campaign.import_labels(tmp_path / "o.csv")
    (tmp_path / "p.csv").write_text("id,label,annotator,at\ns000,x,ann,\ns001,y,bob,1066-10-14\n")
    with pytest.raises(AnswerError, match="not between 1970 and 9998"):
        campaign.import_labels(tmp_path / "p.csv")
    (tmp_path / "n.csv").write_text("id,label\ns000,\n")
    with pytest.raises(AnswerError, match="holds no answers"):
        campaign.import_labels(tmp_path / "n.csv")
    assert list(campaign.answers.all()) == []


def test_images_go_to_a_folder_per_class(photos, tmp_path):
    folder, truth = photos
    with Campaign.create(tmp_path / "p.db", folder, automatic=False) as campaign:
        campaign.relabel(dict(list(truth.items())[:10]))
        assert campaign.export(tmp_path / "by class") == 10
        assert {path.name for path in (tmp_path / "by class").iterdir()} == set(list(truth.values())[:10])
    with Campaign.create(tmp_path / "q.db", folder, automatic=False) as campaign:
        campaign.import_labels(tmp_path / "by class")
        assert campaign.labels() == dict(list(truth.items())[:10])


def test_a_source_that_changes(photos, tmp_path):
    folder, _ = photos
    with Campaign.create(tmp_path / "p.db", folder, automatic=False) as campaign:
        (folder / "a" / "0.png").unlink()
        (folder / "new.png").write_bytes((folder / "a" / "2.png").read_bytes())
        (folder / "torn.png").write_bytes(b"\x89PNG torn")
        scanned = campaign.source.rescan()
        assert (scanned.added, scanned.gone, scanned.back) == (1, 1, 0)
        assert any("torn.png" in line for line in scanned.problems)
        assert campaign.source.problems() == scanned.problems
        asked = campaign.ask(100, at_most=True).ids
        assert "new.png" in asked
        assert "a/0.png" not in asked
        shutil.copy(folder / "a" / "2.png", folder / "a" / "0.png")
        assert campaign.source.rescan().back == 1


def test_frames_and_arrays_in_memory(tmp_path, table, answer_all):
    frame = pd.read_csv(table[0])
    with Campaign.create(tmp_path / "d.db", frame, batch=10, model="linear") as campaign:
        for _ in range(3):
            answer_all(campaign, table[1])
        assert campaign.retrain() is not None
        with pytest.raises(InputError, match="lives in memory"):
            campaign.retrain(wait=False)
    with Campaign.open(tmp_path / "d.db") as campaign, pytest.raises(InputError, match="pass it again"):
        campaign.show("s000")
    with Campaign.open(tmp_path / "d.db", frame) as campaign:
        assert campaign.show("s000").columns
    with Campaign.create("memory", np.random.default_rng(0).normal(size=(50, 3))) as campaign:
        assert len(campaign.ask(5)) == 5


def test_held_out_samples_are_left_when_the_pool_is_used_up(table, tmp_path):
    with Campaign.create(tmp_path / "d.db", table[0], evaluate=30, validation=20, automatic=False) as campaign:
        pool = [sample.id for sample in campaign._store.samples.all("pool")]
        campaign.relabel(dict.fromkeys(pool, "x"))
        assert {sample.kind for sample in campaign.ask(40).samples} == {"evaluate", "validate"}
        assert len(campaign.ask(40, at_most=True)) == 10
        with pytest.raises(PoolExhausted, match="0 samples are free and 1 were requested"):
            campaign.ask(1)


def test_settings_can_be_changed_within_limits(table, tmp_path):
    with Campaign.create(tmp_path / "d.db", table[0], classes=["a", "b"], automatic=False) as campaign:
        with Campaign.open(tmp_path / "d.db") as other:
            campaign.change(classes=["a", "b", "c"], batch=7, budget=100)
            assert len(other.ask()) == 7  # another process sees it
            other.relabel({"s000": "c"})
        with pytest.raises(LabelError, match="class 'a' is missing"):
            campaign.change(classes=["b", "c"])
        with pytest.raises(InputError, match="random_state cannot be changed"):
            campaign.change(random_state=3)
        with pytest.raises(InputError, match="batch=0"):
            campaign.change(batch=0)
        with pytest.raises(InputError, match="unknown strategy"):
            campaign.change(strategy="best")
        assert campaign.settings.batch == 7


def test_check_and_backup(campaign, tmp_path, table):
    assert campaign.check() == []
    copy = campaign.backup(tmp_path / "copy.db")
    table[0].rename(tmp_path / "gone.csv")
    with Campaign.open(copy) as copied:
        assert any("cannot be opened" in line for line in copied.check())
    assert Path(copy).exists()


def test_repeating_an_answer_after_someone_elses_makes_it_count(campaign):
    """The same answer again, after somebody else's, is a new one: the last counts."""
    for who, label in (("ann", "a"), ("bob", "b"), ("ann", "a")):
        campaign.relabel({"s000": label}, annotator=who)
    assert campaign.labels() == {"s000": "a"}
    assert len(list(campaign.answers.all())) == 3


def test_spaces_around_labels_make_no_new_class(campaign):
    campaign.relabel({"s000": " cat ", "s001": "cat"})
    assert set(campaign.labels().values()) == {"cat"}
    with pytest.raises(AnswerError, match="is empty"):
        campaign.relabel({"s002": "  "})


def test_new_labels_in_the_source_fill_in_unanswered_samples(tmp_path):
    frame = pd.DataFrame({"id": list("abcdef"), "x": range(6), "kind": [None] * 6})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with Campaign.create(tmp_path / "t.db", tmp_path / "t.csv", label="kind", automatic=False) as campaign:
        campaign.relabel({"a": "mine"})
        frame.assign(kind=["theirs", "theirs", None, None, None, None]).to_csv(tmp_path / "t.csv", index=False)
        assert campaign.source.rescan().labelled == 1
        assert campaign.labels() == {"a": "mine", "b": "theirs"}
        assert campaign.source.rescan().labelled == 0


def test_a_column_that_repeats_cannot_hold_the_ids(tmp_path):
    pd.DataFrame({"town": ["x", "y"] * 20, "value": range(40)}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="has 2 different values in 40 rows; it cannot hold the ids"):
        Campaign.create(tmp_path / "t.db", tmp_path / "t.csv", id_column="town")
    assert not (tmp_path / "t.db").exists()


def test_a_model_that_cannot_take_the_samples_is_refused_at_once(table, tmp_path):
    with pytest.raises(InputError, match="takes images"):
        Campaign.create(tmp_path / "d.db", table[0], model="cnn")
    assert not (tmp_path / "d.db").exists()
