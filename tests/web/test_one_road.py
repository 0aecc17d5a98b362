"""What a person brings means one thing at every door: query, loop, benchmark, campaign and page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest_web import serving
from PIL import Image

import ally
from ally.data import as_source
from ally.data.catalogue.own_data import DataOptions
from ally.data.row_pool import open_pool
from ally.experiment.opening import open_trial
from ally.learning.candidates import slate_for
from ally.learning.training import Training

ROWS = 40
rng = np.random.default_rng(0)
SIZES, ROOMS = np.round(rng.normal(50, 9, ROWS), 2), rng.integers(1, 9, ROWS)
COLOURS = ["red", "blue", "green", None] * (ROWS // 4)
KINDS = ["flat", "house"] * (ROWS // 2)
TEXTS = [f"the {'cat purrs' if row % 2 else 'dog barks'} in street {row} and nobody listens" for row in range(ROWS)]
TABLE = pd.DataFrame({"id": range(100, 100 + ROWS), "size": SIZES, "rooms": ROOMS, "colour": COLOURS})


def photos(folder):
    for number in range(20):
        path = folder / "photos" / ("cat" if number % 2 else "dog") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (40, 50), dtype=np.uint8)).save(path)
    return folder / "photos"


def texts(folder):
    pd.DataFrame({"text": TEXTS, "label": KINDS}).to_csv(folder / "texts.csv", index=False)
    return folder / "texts.csv"


def gaps(folder):
    """Whole numbers as labels, stored with a fraction because some are missing, and gaps in the columns."""
    labels = [*([1, 2, 3] * ROWS)[: ROWS - 4], None, None, None, None]
    table = TABLE.assign(size=np.where(ROOMS > 2, SIZES, np.nan), label=pd.Series(labels, dtype="Float64").to_numpy())
    table.to_csv(folder / "gaps.csv", index=False)
    return folder / "gaps.csv"


def prices(folder):
    """Whole prices, all of them different: not classes."""
    TABLE.assign(price=1000 * np.arange(200, 200 + ROWS)).rename(columns={"price": "target"}).to_parquet(
        folder / "prices.parquet"
    )
    return folder / "prices.parquet"


def sheet(folder):
    """As spreadsheets of half of Europe write it."""
    path = folder / "sheet.csv"
    TABLE.drop(columns="id").assign(label=KINDS).to_csv(path, index=False, sep=";", decimal=",", encoding="utf-8-sig")
    return path


def workbook(folder):
    TABLE.assign(label=KINDS).to_excel(folder / "book.xlsx", index=False)
    return folder / "book.xlsx"


def lines(folder):
    TABLE.assign(label=[row % 3 == 0 for row in range(ROWS)]).to_json(
        folder / "rows.jsonl", orient="records", lines=True
    )
    return folder / "rows.jsonl"


def arrays(folder):
    X = rng.normal(size=(ROWS, 4))
    np.savez(folder / "arrays.npz", X=X, y=[*([0, 1] * ROWS)[: ROWS - 1], np.nan])
    return folder / "arrays.npz"


def frame(folder):
    return TABLE.set_index("id").assign(label=KINDS)


def read_sorted(*sources):
    """All rows of the sources, in an order of their own values."""
    rows = np.concatenate(
        [source.read(np.arange(len(source))).reshape(len(source), -1) for source in sources], dtype=np.float64
    )
    return rows[np.lexsort(np.round(rows, 6).T)]


@pytest.mark.parametrize(
    ("make", "task", "classes", "labels", "kind"),
    [
        (photos, "classification", ["cat", "dog"], 20, "images"),
        (texts, "classification", ["flat", "house"], ROWS, "text"),
        (gaps, "classification", [1, 2, 3], ROWS - 4, "table"),
        (prices, None, None, ROWS, "table"),
        (sheet, "classification", ["flat", "house"], ROWS, "table"),
        (workbook, "classification", ["flat", "house"], ROWS, "table"),
        (lines, "classification", [False, True], ROWS, "table"),
        (arrays, "classification", [0, 1], ROWS - 1, "features"),
        (frame, "classification", ["flat", "house"], ROWS, "table"),
    ],
)
def test_every_door_reads_the_same(tmp_path, make, task, classes, labels, kind):
    place = make(tmp_path)
    reading = {"label": "folder"} if make is photos else {}
    samples_in_all = 20 if make is photos else ROWS

    if task is None:
        # 40 whole numbers that never repeat may be either: every door asks.
        for ask in (
            lambda: ally.query(place, n=1, **reading),
            lambda: ally.Campaign.create("memory", place, automatic=False),
            lambda: open_trial(DataOptions(encoder="auto"), str(place)),
        ):
            with pytest.raises(ally.errors.LabelError, match="task='regression'"):
                ask()
        task, reading = "regression", {"task": "regression"}

    campaign = ally.Campaign.create(tmp_path / "c.db", place, automatic=False, evaluate=0, **reading)
    samples, note = campaign.source.samples, campaign.task_note
    assert campaign.settings.task == task
    answers = {answer.id: answer.label for answer in campaign.answers.current()}
    known = sorted(answers.values())
    assert len(known) == labels
    ids = [sample.id for sample in samples.scan()]
    theirs = samples.features(ids)
    learners = [candidate.name for candidate in slate_for(theirs, Training())]

    options = {name: value for name, value in reading.items() if name != "task"}
    pool = open_pool(place, **options)
    assert len(pool.source) == len(ids) == samples_in_all
    np.testing.assert_allclose(read_sorted(pool.source), read_sorted(theirs), rtol=1e-6)
    assert [candidate.name for candidate in slate_for(pool.source, Training())] == learners
    loop = ally.Loop(place, model="linear", task=reading.get("task", "auto"), **options)
    assert (len(loop.labelled), loop.free) == (labels, samples_in_all - labels)
    if loop.free:
        query = loop.ask(1)
        assert reading or note in query.notes
        assert str(query.ids[0]) in ids or "hashes" in " ".join(samples.notes)

    if make is not frame:  # a benchmark reads what has a path
        trial = open_trial(DataOptions(encoder="auto", task=task if "task" in reading else "auto"), str(place))
        assert trial.task == task
        assert trial.classes == classes
        assert sorted([*trial.pool_labels.tolist(), *trial.test_labels.tolist()]) == known
        ours = as_source(trial.open_pool()), as_source(trial.open_test())
        labelled = samples.features([id for id in ids if id in answers])
        assert ours[0].shape == ours[1].shape == theirs.shape
        if kind in ("images", "features"):  # a benchmark learns columns and words from its pool alone
            np.testing.assert_allclose(read_sorted(*ours), read_sorted(labelled), rtol=1e-6)
        assert [candidate.name for candidate in slate_for(ours[0], Training())] == learners

    assert campaign.status().given == labels
    with serving(campaign) as served, served.client() as client:
        page = client.get("/campaign").json()
    assert (page["task"], page["kind"], page["samples"]) == (task, kind, samples_in_all)
    assert classes is None or sorted(one["label"] for one in page["classes"]) == classes
