from collections import Counter

import numpy as np
import pandas as pd
import pytest

import ally
from ally.campaign import Campaign
from ally.data.catalogue import load
from ally.data.task_rule import decide_task
from ally.errors import LabelError

rng = np.random.default_rng(0)
CODES = np.repeat(np.arange(100), 30)
PRICES = np.round(rng.lognormal(3, 0.4, 506), 1)
MONEY = rng.integers(1000, 9000, 506) * 100
ROUNDED = np.round(PRICES).astype(int) + 100
UNCLEAR = "do not tell"

CASES = {
    "texts": (["a", "b", "a"], "classification"),
    "booleans": ([True, False, True], "classification"),
    "five labels 0, 1, 2": ([0, 1, 2, 0, 1], "classification"),
    "one label of each digit": (list(range(10)), "classification"),
    "two marks": ([-1, 1, 1], "classification"),
    "100 classes of 30": (CODES.tolist(), "classification"),
    "prices with fractions": (PRICES.tolist(), "regression"),
    "whole prices": (MONEY.tolist(), "regression"),
    "150 different integers": (list(range(150)) * 3, "regression"),
    "rounded prices": (ROUNDED.tolist(), UNCLEAR),
    "30 integers over 40 labels": ([*range(40, 70), *range(40, 50)], UNCLEAR),
    "three prices": ([310_000, 450_000, 275_000], UNCLEAR),
    "one price": ([310_000], UNCLEAR),
    "twenty numbers, once each": (list(range(20)), UNCLEAR),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rule(name):
    labels, task = CASES[name]
    if task == UNCLEAR:
        with pytest.raises(LabelError, match=r"do not tell.*task='classification' or task='regression' \(--task\)"):
            decide_task(Counter(labels))
    else:
        found = decide_task(Counter(labels))
        assert found.task == task
        assert ("task=" in found.note) == (not isinstance(labels[0], (str, bool)))


def test_what_is_no_label_is_refused():
    for odd in ([(1, 2)], [b"a"], [pd.Timestamp("2025-01-01")]):
        with pytest.raises(LabelError, match="Unknown label type"):
            decide_task(Counter(odd))


@pytest.mark.parametrize("name", ["texts", "100 classes of 30", "prices with fractions", "whole prices"])
def test_every_door_says_the_same(name, tmp_path):
    labels, task = CASES[name]
    labels = labels * 10 if name == "texts" else labels
    frame = pd.DataFrame({"size": rng.normal(size=len(labels)), "label": labels})
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    with Campaign.create("memory", path) as campaign:
        assert campaign.settings.task == task
        assert task in campaign.task_note
    data = load(path)
    assert data.task == task
    assert campaign.task_note in data.notes
    # With gaps whole numbers become floats; the verdict stays.
    y = pd.Series([*labels, None])
    for given in (y, y.astype(object)):
        loop = ally.Loop(rng.normal(size=(len(y), 2)), given, strategy="random", model="linear")
        assert campaign.task_note in loop.ask(1).notes


def test_every_door_asks_where_labels_do_not_tell(tmp_path):
    labels, _ = CASES["rounded prices"]
    frame = pd.DataFrame({"size": rng.normal(size=len(labels)), "label": labels})
    frame.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(LabelError, match=UNCLEAR):
        Campaign.create("memory", frame)
    with pytest.raises(LabelError, match=UNCLEAR):
        load(tmp_path / "table.csv")
    with pytest.raises(LabelError, match=UNCLEAR):
        ally.query(frame, n=1)
    for task in ("classification", "regression"):
        with Campaign.create("memory", frame, task=task) as campaign:
            assert (campaign.settings.task, campaign.task_note) == (task, None)
            assert load(tmp_path / "table.csv", task=task).task == task
    loop = ally.Loop(frame[["size"]], strategy="random")
    q = loop.ask(3)
    with pytest.raises(LabelError, match=UNCLEAR):
        loop.tell(q.id, dict(zip(q.ids, CASES["three prices"][0], strict=True)))


def test_words_for_nothing_among_numbers_are_asked_about():
    frame = pd.DataFrame({"size": range(300), "label": [*PRICES[:299], "NA"]})
    with pytest.raises(LabelError, match="missing_label='NA'"):
        Campaign.create("memory", frame)
    with Campaign.create("memory", frame, missing_label="NA") as campaign:
        assert campaign.settings.task == "regression"
        assert campaign.status().given == 299
