import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse

import ally
from ally.errors import AnswerError, IdError, LabelError, PoolExhausted
from ally.estimators import ConstrainedClassifier
from ally.testing.pools import blobs

SMALL = ConstrainedClassifier(hidden=(8,), epochs=3)


def make(strategy="margin", **more):
    scene = blobs("classification")
    return ally.Loop(scene.X, scene.y, strategy=strategy, model=SMALL, random_state=0, **more)


def test_partial_answers_skips_and_late_answers():
    loop = make()
    q = loop.ask(5)
    a, b, c, d, e = q.ids.tolist()
    told = loop.tell(q.id, {a: 0.0, b: ally.SKIP})
    assert (told.labelled, told.skipped, set(told.waiting)) == (1, 1, {c, d, e})
    second = loop.ask(5)
    assert not set(second.ids.tolist()) & {a, b, c, d, e}
    assert loop.tell(q.id, {c: 1.0, d: 2.0}).waiting == (e,)
    assert {a, c, d} <= set(loop.labelled.tolist())
    assert b not in loop.labelled


def test_telling_twice_changes_nothing():
    loop = make()
    q = loop.ask(2)
    answers = dict.fromkeys(q.ids.tolist(), 1.0)
    first, second = loop.tell(q.id, answers), loop.tell(q.id, answers)
    assert first == second
    assert len(loop.labelled) == 14


def test_a_bad_answer_takes_none():
    loop = make()
    q = loop.ask(3)
    a, b, _ = q.ids.tolist()
    before = loop.labelled.tolist()
    outside = next(row for row in range(60) if row not in q.ids)
    for answers, error, message in (
        ({a: 0.0, outside: 1.0}, AnswerError, f"id {outside} is not part of query 1"),
        ({a: 0.0, 999: 1.0}, IdError, "id 999 is not a row number"),
        ({a: 0.0, b: "cat"}, LabelError, "mixes"),
        ({a: 0.0, b: None}, LabelError, "label None cannot be a class; give a class, or ally.SKIP"),
        ({a: 0.0, b: 1.5}, LabelError, "label 1.5 has a fraction and the classes so far are whole numbers"),
        ({a: 0.0, b: np.inf}, LabelError, "infinity"),
        ({a: 0.0, b: [1]}, LabelError, "cannot be a class"),
        ([a, b], AnswerError, "answers is a list; pass a mapping"),
    ):
        with pytest.raises(error, match=message):
            loop.tell(q.id, answers)
        assert loop.labelled.tolist() == before
    loop.tell(q.id, {a: 0.0})
    for other in (1.0, ally.SKIP):
        with pytest.raises(AnswerError, match=rf"id {a} is already labelled 0.0, and the new answer differs"):
            loop.tell(q.id, {a: other})
    with pytest.raises(AnswerError, match=r"query 9 was never asked; queries so far: 1 to 1"):
        loop.tell(9, {a: 0.0})


def test_declared_classes_are_closed_and_found_ones_are_open():
    closed = make(classes=[0, 1, 2])
    q = closed.ask(1)
    with pytest.raises(LabelError, match=r"label 7 is not one of the 3 classes"):
        closed.tell(q.id, {q.ids[0]: 7})
    loop = make()
    q = loop.ask(2)
    loop.tell(q.id, {q.ids[0]: 7.0, q.ids[1]: 1.0})
    assert loop.fit().classes == (0.0, 1.0, 2.0, 7.0)


def test_release_makes_samples_free_again():
    loop = make()
    q = loop.ask(48)
    with pytest.raises(PoolExhausted, match=r"0 samples are free and 1 were requested"):
        loop.ask(1)
    loop.tell(q.id, {q.ids[0]: 1.0})
    assert loop.release(q.id) == 47
    assert loop.free == 47


def test_a_released_query_cannot_be_answered():
    loop = make()
    first = loop.ask(30)
    assert loop.release(first.id) == 30
    second = loop.ask(5)
    assert loop.release(first.id) == 0
    assert not set(loop.ask(5).ids.tolist()) & set(second.ids.tolist())
    gone = next(row for row in first.ids.tolist() if row not in second.ids)
    with pytest.raises(AnswerError, match=f"id {gone} was released from query 1"):
        loop.tell(first.id, {gone: 0.0})


def test_skips_do_not_train_again_and_do_not_move_the_features():
    early, late = make(), make()
    fits = []
    for loop, when in ((early, "before"), (late, "after")):
        if when == "before":
            loop.fit()
        q = loop.ask(10) if when == "before" else ally.Loop.ask(loop, 10)
        loop.tell(q.id, dict.fromkeys(q.ids.tolist(), ally.SKIP))
        fits.append(loop.fit())
    assert fits[0].report.train_loss == fits[1].report.train_loss
    fit = early.fit()
    q = early.ask(2)
    early.tell(q.id, {q.ids[0]: ally.SKIP})
    assert early.fit() is fit


def test_the_task_is_checked_before_there_are_labels():
    with pytest.raises(ally.errors.UnsupportedTask, match="not defined for regression"):
        ally.Loop(blobs("regression").X, task="regression", strategy="badge")


def test_notes_follow_the_first_answers():
    scene = blobs("regression", labelled=60)
    loop = ally.Loop(scene.X, strategy="coreset", model=SMALL, random_state=0)
    q = loop.ask(10)
    loop.tell(q.id, {row: scene.y[row] for row in q.ids.tolist()})
    assert loop.ask(1).notes[0].startswith("task: regression")


def test_threads_do_not_disturb_each_other():
    from concurrent.futures import ThreadPoolExecutor

    scene = blobs("classification")

    def ids(seed):
        return ally.query(scene.X, scene.y, n=4, strategy="margin", model=SMALL, random_state=seed).ids.tolist()

    alone = [ids(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ids, range(8))) == alone


def test_the_first_batch_covers_the_inputs():
    """Six far blobs and no labels: six samples, one of each, for strategies that cover and for others."""
    rng = np.random.default_rng(0)
    X = 20 * np.repeat(rng.normal(size=(6, 4)), 30, axis=0) + 0.1 * rng.normal(size=(180, 4))
    for strategy, by in (
        ("margin", "ClusterCentre"),
        ("ally", "Herding"),
        ("coreset", "KCenter"),
        ("typiclust", "TypiClust"),
    ):
        q = ally.query(X, n=6, strategy=strategy, classes=[0, 1], random_state=0)
        assert set(q.ids // 30) == set(range(6)), strategy
        assert any(f"no labels yet: the first batch covers the input space ({by})" in note for note in q.notes)


def test_cold_start_takes_its_task_from_the_first_answers():
    scene = blobs("regression", labelled=60)
    loop = ally.Loop(scene.X, strategy="coreset", model=SMALL, random_state=0)
    q = loop.ask(10)
    assert any("no labels yet" in note for note in q.notes)
    loop.tell(q.id, {row: scene.y[row] for row in q.ids.tolist()})
    assert loop.fit().task == "regression"
    strings = ally.Loop(scene.X, model=SMALL, random_state=0)
    q = strings.ask(4)
    strings.tell(q.id, dict(zip(q.ids.tolist(), ["b", "a", "b", "a"], strict=True)))
    assert strings.fit().classes == ("a", "b")


def test_fit_is_reused_until_labels_change():
    loop = make()
    fit = loop.fit()
    q = loop.ask(2)
    assert loop.fit() is fit
    loop.tell(q.id, {q.ids[0]: 1.0})
    assert loop.fit() is not fit


def test_every_container_gives_the_same_ids():
    scene = blobs("classification")
    columns = [f"f{i}" for i in range(scene.X.shape[1])]
    frame = pd.DataFrame(scene.X, columns=columns, index=range(500, 560))

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return len(scene.X)

        def __getitem__(self, row):
            return torch.from_numpy(scene.X[row]), 0

    containers = {
        "array": scene.X,
        "list": scene.X.tolist(),
        "fortran": np.asfortranarray(scene.X),
        "sparse": sparse.csr_matrix(scene.X),
        "sparse coo": sparse.coo_array(scene.X),
        "pandas": frame,
        "polars": pl.DataFrame(scene.X, schema=columns),
        "arrow": pa.table({name: scene.X[:, i] for i, name in enumerate(columns)}),
        "tensor": torch.from_numpy(scene.X),
        "dataset": Data(),
    }
    found = {
        name: ally.query(X, scene.y, n=4, strategy="margin", model=SMALL, random_state=0).ids.tolist()
        for name, X in containers.items()
    }
    # Zeros of a sparse matrix mean absence: its features are not centred, so that the network sees other numbers.
    assert found.pop("sparse") == found.pop("sparse coo")
    found["pandas"] = [id - 500 for id in found["pandas"]]
    assert all(ids == found["array"] for ids in found.values()), found


def test_missing_labels_of_every_kind():
    scene = blobs("classification")
    known = ~np.isnan(scene.y)
    whole = np.where(known, scene.y, -1).astype(int)
    reference = ally.query(scene.X, scene.y, n=4, strategy="margin", model=SMALL, random_state=0).ids.tolist()
    for y, more in (
        (whole, {"missing_label": -1}),
        (whole.astype(str), {"missing_label": "-1"}),
        (pd.Series(np.where(known, scene.y, np.nan)).astype("Int64"), {}),
        (pd.Series(whole).astype("category"), {"missing_label": -1}),
        (pl.Series([int(v) if k else None for v, k in zip(whole, known, strict=True)]), {}),
        (torch.from_numpy(scene.y), {}),
        (scene.y[:, None], {}),
    ):
        assert (
            ally.query(scene.X, y, n=4, strategy="margin", model=SMALL, random_state=0, **more).ids.tolist()
            == reference
        )


def test_why_explains_each_id():
    scene = blobs("classification")
    given = {"n": 6, "random_state": 0, "model": SMALL, "ids": [f"s{row}" for row in range(60)]}
    q = ally.query(scene.X, scene.y, strategy="ally-clusters", **given)
    assert q.why.index.tolist() == q.ids.tolist()
    assert list(q.why) == [
        "score",
        "dual",
        "percentile",
        "cluster",
        "cluster_size",
        "predicted",
        "probability",
        "nearest_labelled",
        "distance",
    ]
    assert q.why["percentile"].between(0, 100).all()
    assert q.why["probability"].between(1 / 3, 1).all()
    assert q.why["dual"].tolist() == pytest.approx(np.expm1(q.scores).clip(min=0).tolist())
    assert (q.why["cluster_size"] >= 1).all()
    assert set(q.why["nearest_labelled"]) <= {f"s{row}" for row in range(12)}
    assert set(q.why["predicted"]) <= {0.0, 1.0, 2.0}
    assert q.report["rank_quality"] is None  # twelve labels are too few for five folds
    assert q.report["fit"].positive_duals is not None
    blind = ally.query(scene.X, scene.y, n=3, strategy="random", random_state=0)
    assert blind.why["predicted"].isna().all()
    assert blind.why["dual"].isna().all()


def test_nearest_labelled_is_the_nearest():
    scene = blobs("classification")
    loop = ally.Loop(scene.X, scene.y, strategy="coreset", model=SMALL, random_state=0)
    q = loop.ask(4)
    view = loop._learner.predict(loop.fit(), scene.X)
    for id, row in q.why.iterrows():
        gaps = (view.embeddings[:12] - view.embeddings[id]).norm(dim=1)
        assert int(gaps.argmin()) == row["nearest_labelled"]
        assert row["distance"] == pytest.approx(float(gaps.min()), rel=1e-4)


def test_notes_say_what_was_decided():
    scene = blobs("regression")
    q = ally.query(scene.X, scene.y, n=2, strategy="random")
    (note,) = q.notes
    assert note.startswith("task: regression, as the labels are numbers with fractions")
    measured = np.where(np.arange(60) < 30, np.arange(60), np.nan)
    with pytest.raises(LabelError, match="do not tell whether they are classes or numbers"):
        ally.query(scene.X, measured, n=2, strategy="random")
    loose = ally.query(scene.X, scene.y, n=2, objective=ally_pdcl(eps=1e3), model="mlp")
    assert any("0% of the duals are positive" in note for note in loose.notes)


def ally_pdcl(**arguments):
    from ally.learning.objectives import PDCL

    return PDCL(**arguments)


def test_progress_is_reported():
    scene = blobs("classification")
    seen = []
    ally.query(scene.X, scene.y, n=2, model=SMALL, progress=lambda *event: seen.append(event))
    assert ("train", 3, 3) in seen
    assert ("embed", 48, 48) in seen


def test_own_module_sees_raw_features_and_is_left_alone():
    from torch import nn

    from ally.models import Split

    scene = blobs("classification")
    module = Split(nn.Sequential(nn.Linear(4, 5), nn.Tanh()), nn.Linear(5, 3))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    q = ally.query(scene.X, scene.y, n=3, model=module, random_state=0)
    assert len(q) == 3
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    built = ally.query(
        scene.X,
        scene.y,
        n=3,
        model=lambda shape, outputs: Split(nn.Identity(), nn.Linear(shape[0], outputs)),
        random_state=0,
    )
    assert len(built) == 3


def test_images_go_to_a_convolutional_network():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 255, size=(40, 3, 8, 8), dtype=np.uint8)
    y = np.where(np.arange(40) < 16, np.arange(40) % 2, np.nan)
    q = ally.query(X, y, n=3, random_state=0, strategy="badge")
    assert len(q) == 3


def test_scratch_files_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scene = blobs("classification")
    ally.query(scene.X, scene.y, n=3, model=SMALL, memory_budget=0)
    with pytest.raises(ally.errors.MemoryBudgetExceeded, match=r"BAIT on 48 candidates with 3 classes needs"):
        ally.query(scene.X, scene.y, n=3, model=SMALL, memory_budget=0, strategy="bait")
    assert list(tmp_path.iterdir()) == []
