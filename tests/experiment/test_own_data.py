"""A benchmark on a user's data sees what their campaign would see, and a campaign can be one."""

import hashlib
import os
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import ally
from ally.data import as_source
from ally.data.catalogue import Reading
from ally.data.catalogue.own_data import DataOptions
from ally.errors import DataError, InputError, NotTrusted
from ally.experiment.opening import forget_trials, open_trial
from ally.learning.candidates import slate_for
from ally.learning.training import Training

rng = np.random.default_rng(0)
ROWS = 60


def photos(here):
    for number in range(24):
        path = here / "photos" / ("cat" if number % 2 else "dog") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (40, 50), dtype=np.uint8)).save(path)
    return here / "photos"


def texts(here):
    words = [f"the {'cat purrs' if row % 2 else 'dog barks'} in street {row}" for row in range(ROWS)]
    pd.DataFrame({"id": range(ROWS), "text": words, "label": ["pets", "streets"] * 30}).to_csv(
        here / "t.csv", index=False
    )
    return here / "t.csv"


def table(here):
    frame = pd.DataFrame({"id": range(ROWS), "size": rng.normal(size=ROWS), "colour": ["red", "blue", "green"] * 20})
    frame.assign(label=[1.0, 2.0, 3.0] * 19 + [np.nan] * 3).to_csv(here / "rows.csv", index=False)
    return here / "rows.csv"


def prices(here):
    frame = pd.DataFrame({"id": range(ROWS), "size": rng.normal(size=ROWS), "rooms": rng.integers(1, 9, ROWS)})
    frame.assign(label=np.round(rng.lognormal(3, 0.4, ROWS), 1)).to_csv(here / "prices.csv", index=False)
    return here / "prices.csv"


def arrays(here):
    np.savez(here / "a.npz", X=rng.normal(size=(ROWS, 4)), y=[*rng.integers(0, 3, ROWS - 1), np.nan])
    return here / "a.npz"


def samples_of(source):
    return sorted(row.tobytes() for row in np.asarray(source.read(np.arange(len(source))), np.float64))


@pytest.mark.parametrize("make", [photos, texts, table, prices, arrays])
def test_a_benchmark_sees_what_a_campaign_sees(tmp_path, make):
    place = make(tmp_path)
    label = {"label": "folder"} if make is photos else {}
    with ally.Campaign.create("memory", place, automatic=False, **label) as campaign:
        settings, samples = campaign.settings, campaign.source.samples
        given = {answer.id: answer.label for answer in campaign.answers.current()}
    trial = open_trial(DataOptions(encoder="auto"), str(place))
    theirs = samples.features(list(given))
    ours = [as_source(trial.open_pool()), as_source(trial.open_test())]
    assert trial.task == settings.task
    labels = [*trial.pool_labels.tolist(), *trial.test_labels.tolist()]
    assert sorted(labels) == sorted(given.values())
    assert {type(label) for label in labels} == {type(label) for label in given.values()}
    learners = [[candidate.name for candidate in slate_for(source, Training())] for source in (theirs, ours[0])]
    assert learners[0] == learners[1]
    assert "the samples are opened as a campaign opens them (`ally new`)" in trial.notes
    assert campaign.task_note in trial.notes
    if make is not texts:  # the words of texts are learned from the pool alone
        assert theirs.shape == ours[0].shape == ours[1].shape
        assert sorted([*samples_of(ours[0]), *samples_of(ours[1])]) == samples_of(theirs)


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """A campaign on 60 rows with 50 labels."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(
        {"id": [f"r{row}" for row in range(ROWS)], "a": rng.normal(size=ROWS), "b": rng.normal(size=ROWS)}
    )
    frame.to_csv("rows.csv", index=False)
    with ally.Campaign.create(
        "pets.db", "rows.csv", automatic=False, evaluate=0, classes=["x", "y", "z"], model="linear"
    ) as made:
        made.relabel({f"r{row}": "xy"[int(frame["a"][row] > 0)] for row in range(50)})
    forget_trials()
    return tmp_path / "pets.db"


def bench(name, **more):
    return ally.bench(name, "random", out="out", seeds=1, rounds=1, workers=0, **more)


def test_a_campaign_is_a_benchmark_of_its_labels(campaign):
    before = hashlib.sha256(campaign.read_bytes()).digest()
    said = []
    results = bench("pets.db", say=said.append)
    assert set(results["model"]) == {"linear"}
    assert results["value"].iloc[-1] > 0.5
    assert hashlib.sha256(campaign.read_bytes()).digest() == before
    trial = open_trial(DataOptions(encoder="auto"), "pets.db")
    assert trial.classes == ["x", "y", "z"]
    assert len(trial.pool) + len(trial.test) == 50
    assert any("the labels of the campaign are the answers" in words for words in said)
    with ally.Campaign.open("pets.db") as more:
        more.relabel({"r55": "x"})
    with pytest.raises(InputError, match=r"made when pets\.db had other data, labels or settings"):
        bench("pets.db")


def test_an_address_with_a_password_is_not_kept_in_a_run_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="holds a password") as refused:
        bench("postgresql://ann:secret@localhost/pets")
    assert "secret" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_batches_of_a_small_pool_fit_by_default(campaign):
    results = ally.bench("pets.db", "random", out="out", seeds=1, workers=0)
    assert results["labels"].tolist() == [6 + 2 * number for number in range(9)]


def test_the_evaluation_sample_is_the_test_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"id": range(200), "a": rng.normal(size=200)}).to_csv("rows.csv", index=False)
    with ally.Campaign.create("e.db", "rows.csv", automatic=False, evaluate=40) as made:
        made.relabel({str(row): "xy"[row % 2] for row in range(200)})
        held_out = {sample.id for sample in made.answers.store.samples.all() if sample.role == "evaluate"}
    trial = open_trial(DataOptions(encoder="auto"), "e.db")
    assert len(held_out) == len(trial.test) == 40
    assert len(trial.pool) == 160


@pytest.mark.parametrize(
    ("labels", "error", "told"),
    [
        ({}, InputError, "has no labels to compare strategies by"),
        ({"r1": "x", "r2": "y"}, DataError, "2 labelled samples of 2 classes, too few for a test set"),
        ({f"r{row}": "x" for row in range(40)}, DataError, "every label of few.db is x"),
    ],
)
def test_campaigns_with_too_few_labels(campaign, labels, error, told):
    with ally.Campaign.create("few.db", "rows.csv", automatic=False, evaluate=0) as few:
        if labels:
            few.relabel(labels)
    with pytest.raises(error, match=told):
        bench("few.db")


def test_a_campaign_says_itself_how_it_reads_its_samples(campaign):
    for option in ({"label": "a"}, {"task": "regression"}, {"encoder": "none"}, {"reading": {"text": "a"}}):
        with pytest.raises(InputError, match="a campaign keeps how it reads its samples"):
            bench("pets.db", **option)
    (campaign.parent / "rows.csv").unlink()
    with pytest.raises(DataError, match=r"the source .*rows\.csv is missing"):
        bench("pets.db")


def test_a_campaign_of_somebody_else_names_no_code_and_no_place(campaign, tmp_path):
    with ally.Campaign.open("pets.db") as mine:
        mine.revoke_trust()
    with sqlite3.connect(campaign) as store:
        (kept,) = store.execute("SELECT settings FROM campaign").fetchone()
        store.execute("UPDATE campaign SET settings = ?", (kept.replace('"linear"', '"os:getcwd"'),))
    said = []
    results = bench("pets.db", say=said.append)
    assert set(results["model"]) == {"auto"}
    assert any("restricted: model='os:getcwd' is ignored" in words for words in said)
    (tmp_path / "elsewhere").mkdir()
    shutil.move("pets.db", "elsewhere/pets.db")
    os.symlink(tmp_path / "rows.csv", tmp_path / "elsewhere" / "rows.csv")
    forget_trials()
    with pytest.raises(NotTrusted, match="lies outside its folder and is not read"):
        bench("elsewhere/pets.db")


def test_options_of_a_campaign_are_taken(tmp_path):
    trial = open_trial(DataOptions(reading=Reading.of({"size": 16})), str(photos(tmp_path)))
    assert trial.pool.shape[1:] == (3, 16, 16)
