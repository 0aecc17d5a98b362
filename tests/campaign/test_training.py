"""What a training records, and what it never sees."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import cohen_kappa_score, r2_score

import ally
from ally import Campaign
from ally.campaign.asking import composition
from ally.campaign.settings import Settings
from ally.campaign.training.measures import agreement, scores
from ally.campaign.training.models import handed_model, measured_model
from ally.errors import DataError, InputError
from ally.learning.trained import Trained


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory, write_digits, answer_all):
    """The file of a campaign with 60 labels and three models."""
    folder = tmp_path_factory.mktemp("trained")
    source, truth = write_digits(folder)
    with Campaign.create(
        folder / "d.db", source, batch=20, evaluate=30, model="linear", automatic=False, strategy="ally-clusters"
    ) as campaign:
        for turn in range(4):
            answer_all(campaign, truth, 20)
            if turn:
                campaign.retrain()
    return folder / "d.db"


@pytest.fixture
def trained(trained_once, tmp_path):
    """A copy of that campaign that is not open anywhere."""
    shutil.copy(trained_once, tmp_path / "d.db")
    with Campaign.open(tmp_path / "d.db") as campaign:
        yield campaign


def test_a_training_ranks_scores_and_measures(trained):
    status = trained.status()
    assert [line.labels for line in status.curve] == [30, 45, 60]
    assert status.model.value > 0.8
    assert status.model.low < status.model.value <= status.model.high
    assert status.model.evaluated_on == 20
    assert status.model.agreement > 0.7
    assert 0 <= status.model.positive_duals <= 1
    query = trained.ask(20)
    active = [sample for sample in query.samples if sample.kind == "active"]
    assert query.model == status.model.number
    assert all(sample.score is not None for sample in active)
    why = active[0].why
    assert why["predicted"] in ("digit 0", "digit 1", "digit 2")
    assert 0 < why["probability"] <= 1
    assert why["nearest_labelled"] in trained.labels()
    assert all(sample.score is None for sample in query.samples if sample.kind == "evaluate")


def test_the_first_batch_is_what_the_loop_would_ask(trained, table):
    store, settings = trained._store, trained.settings
    labels = trained.labels()
    pool = [sample.id for sample in store.samples.all("pool")]
    order = [id for id in pool if id in labels] + [id for id in pool if id not in labels]
    loop = ally.Loop(
        trained.source.samples.features(order),
        [labels.get(id) for id in order],
        ids=order,
        classes=["digit 0", "digit 1", "digit 2"],
        hygiene=ally.Hygiene(),
        model="linear",
        strategy=settings.strategy,
        random_state=settings.random_state,
    )
    ranked = [entry.row for entry in store.models.ranking(store.models.newest().number)]
    assert set(store.samples.ids(ranked[:20])) == set(loop.ask(20).ids.tolist())


def test_evaluation_labels_do_not_change_the_model(table, tmp_path, clock):
    """Two campaigns that differ only in the labels of the evaluation sample measure bit-equal weights, and have equal
    rankings; the models that they hand out differ."""
    found = []
    for name, lie in (("a", False), ("b", True)):
        with Campaign.create(
            tmp_path / f"{name}.db", table[0], evaluate=30, model="linear", automatic=False, clock=clock
        ) as campaign:
            held = {sample.id for sample in campaign._store.samples.all("evaluate")}
            pool = [sample.id for sample in campaign._store.samples.all("pool")][:40]
            campaign.relabel(
                {id: table[1][id] for id in pool} | {id: "digit 0" if lie else table[1][id] for id in held}
            )
            campaign.retrain()
            store = campaign._store
            measured, handed = (model(store.models.weights(1)).to_bytes() for model in (measured_model, handed_model))
            found.append((measured, list(store.models.ranking(1)), campaign.status().model.value, handed))
    assert found[0][:2] == found[1][:2]
    assert found[0][2] > found[1][2]
    assert found[0][3] != found[1][3]


def test_validation_labels_stop_the_training_and_are_not_trained_on(table, tmp_path):
    with Campaign.create(
        tmp_path / "d.db", table[0], evaluate=0, validation=30, model="mlp", automatic=False
    ) as campaign:
        held = {sample.id for sample in campaign._store.samples.all("validate")}
        pool = [sample.id for sample in campaign._store.samples.all("pool")][:40]
        campaign.relabel({id: table[1][id] for id in (*pool, *held)})
        campaign.retrain()
        fit = campaign._store.models.newest().report["fit"]
        assert fit["samples"] == 40
        assert "validation_loss" in fit


def test_cold_start_covers_the_inputs_and_one_class_waits(table, tmp_path):
    with Campaign.create(
        tmp_path / "d.db", table[0], batch=10, evaluate=0, model="linear", automatic=False
    ) as campaign:
        campaign.retrain()
        cold = campaign.ask(10)
        assert all(sample.score is not None for sample in cold.samples)
        assert (
            len({table[1][id] for id in cold.ids}) == 3
        )  # a random ten may well miss a class; a cover of three clusters does not
        campaign.tell(cold, dict.fromkeys(cold.ids, "digit 0"))
        campaign.retrain()
        assert "two classes" in campaign._store.models.newest().report["cold"]
        assert campaign.status().training_state == "done"
        with pytest.raises(InputError, match="no trained model yet"):
            campaign.predict()


def test_everything_labelled(tmp_path, answer_all):
    frame = pd.DataFrame({"id": list("abcdef"), "x": [0.0, 0.1, 0.2, 5.0, 5.1, 5.2]})
    truth = dict(zip("abcdef", [0, 0, 0, 1, 1, 1], strict=True))
    with Campaign.create("memory", frame, batch=6) as campaign:
        answer_all(campaign, truth)
        campaign.retrain()
        with pytest.raises(DataError, match="nothing to predict"):
            campaign.predict()
        assert campaign.predict(frame)["label"].tolist() == list(truth.values())


def test_regression(tmp_path, answer_all):
    X, y = load_diabetes(return_X_y=True)
    frame = pd.DataFrame(X).set_axis([f"c{n}" for n in range(X.shape[1])], axis=1)
    frame.insert(0, "id", [f"p{n}" for n in range(len(X))])
    truth = dict(zip(frame["id"], y.tolist(), strict=True))
    with Campaign.create("memory", frame, task="regression", model="linear", batch=40, random_share=0.25) as campaign:
        for _ in range(3):
            answer_all(campaign, truth)
            campaign.retrain()
        status = campaign.status()
        assert status.model.metric == "r2"
        assert -0.5 < status.model.value < 0.9
        assert status.classes == {}
        assert status.comparison is not None
        assert status.comparison.sentence.count("%") == 1
        predicted = campaign.predict()
        assert list(predicted.columns) == ["id", "label", "beyond_labels"]
        told, held_out = campaign.labels(), {sample.id for sample in campaign._store.samples.all("evaluate")}
        mean = np.mean([value for id, value in told.items() if id not in held_out])
        values = [told[id] for id in told if id in held_out]
        assert status.model.constant == pytest.approx(r2_score(values, np.full(len(values), mean)))
        assert status.model.figures["mae"] < status.model.figures["rmse"] < 200
        assert r2_score([truth[id] for id in predicted["id"]], predicted["label"]) > 0.1
        assert campaign.review()


def test_texts(tmp_path, answer_all):
    lines = [f"the {'cat purrs' if n % 2 else 'dog barks'} in street {n}" for n in range(80)]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    with Campaign.create(tmp_path / "t.db", tmp_path / "t.txt", batch=10, automatic=False) as campaign:
        for _ in range(2):
            query = campaign.ask(10)
            campaign.tell(query, {id: "cat" if "cat" in campaign.show(id).text else "dog" for id in query.ids})
        campaign.retrain()
        (tmp_path / "new.txt").write_text("a dog barks\nmy cat purrs\n", encoding="utf-8")
        assert campaign.predict(tmp_path / "new.txt")["label"].tolist() == ["dog", "cat"]


def test_photos_with_some_that_vanish_or_tear(photos, tmp_path, answer_all):
    folder, truth = photos
    with Campaign.create(tmp_path / "p.db", folder, batch=10, model="cnn", automatic=False) as campaign:
        for _ in range(2):
            answer_all(campaign, truth)
        labelled = next(iter(campaign.labels()))
        free = [id for id in truth if id not in campaign.labels()]
        (folder / labelled).unlink()
        (folder / free[0]).unlink()
        (folder / free[1]).write_bytes(b"torn")
        campaign.retrain()
        assert campaign.status().gone == 2  # free samples; the labelled one keeps its answer
        assert len(campaign.labels()) == 20
        asked = campaign.ask(100, at_most=True).ids
        assert not {labelled, *free[:2]} & set(asked)
        predicted = campaign.predict()
        right = np.mean([truth[id] == label for id, label in zip(predicted["id"], predicted["label"], strict=True)])
        assert right > 0.8


def test_a_model_travels_as_one_file(trained, tmp_path, table):
    path = tmp_path / "model.safetensors"
    trained.training.model().write(path)
    new = pd.read_csv(table[0]).iloc[:50]
    new.to_csv(tmp_path / "new.csv", index=False)
    expected = trained.predict(tmp_path / "new.csv")
    from ally.campaign.training.predict import predict

    pd.testing.assert_frame_equal(predict(Trained.read(path), tmp_path / "new.csv", {}), expected)
    right = np.mean([table[1][id] == label for id, label in zip(expected["id"], expected["label"], strict=True)])
    assert right > 0.9


@pytest.mark.parametrize("damage", ["cut", "other", "empty", "missing"])
def test_a_damaged_model_file_is_refused(trained, tmp_path, damage):
    path = tmp_path / "model.safetensors"
    trained.training.model().write(path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "other":
        from safetensors.numpy import save_file

        save_file({"x": np.zeros(3)}, path)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    with pytest.raises(DataError, match=str(path)):
        Trained.read(path)


def test_new_data_that_cannot_be_read_are_named(photos, tmp_path):
    folder, truth = photos
    with Campaign.create(tmp_path / "p.db", folder, model="cnn", automatic=False) as campaign:
        campaign.relabel(dict(list(truth.items())[:10]))
        campaign.retrain()
        (folder / "torn.png").write_bytes(b"torn")
        predicted = campaign.predict(folder)
        assert len(predicted) == 60
        assert any("torn.png" in line for line in predicted.attrs["problems"])


def test_new_texts_need_neither_ids_nor_the_same_file(tmp_path):
    texts = [f"the {'cat purrs' if n % 2 else 'dog barks'} in street {n}" for n in range(40)]
    pd.DataFrame({"number": range(40), "body": texts}).to_csv(tmp_path / "t.csv", index=False)
    with Campaign.create(
        tmp_path / "t.db", tmp_path / "t.csv", text="body", id_column="number", automatic=False
    ) as campaign:
        campaign.relabel({str(n): "cat" if n % 2 else "dog" for n in range(20)})
        campaign.retrain()
        (tmp_path / "new.csv").write_text("body\na dog barks\nmy cat purrs\n")
        (tmp_path / "new.txt").write_text("a dog barks\nmy cat purrs\n")
        for name in ("new.csv", "new.txt"):
            assert campaign.predict(tmp_path / name)["label"].tolist() == ["dog", "cat"]
        (tmp_path / "bad.csv").write_text("number,title\n1,x\n")
        with pytest.raises(DataError, match="no column 'body', which the model was trained on"):
            campaign.predict(tmp_path / "bad.csv")


def test_concurrent_retrains_train_once(table, tmp_path, answer_all):
    with Campaign.create(
        tmp_path / "d.db", table[0], batch=20, evaluate=0, model="linear", automatic=False
    ) as campaign:
        answer_all(campaign, table[1], 30)
        with ThreadPoolExecutor(2) as pool:
            numbers = list(pool.map(lambda _: campaign.retrain(), range(2)))
        assert numbers[0] == numbers[1]


def test_new_data_must_have_the_same_columns(trained, tmp_path):
    pd.DataFrame({"id": ["a"], "other": [1.0]}).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises((DataError, InputError), match="pixel"):
        trained.predict(tmp_path / "new.csv")


def test_review_finds_wrong_labels(table, tmp_path):
    truth = table[1]
    rng = np.random.default_rng(0)
    with Campaign.create(tmp_path / "d.db", table[0], evaluate=0, model="linear", automatic=False) as campaign:
        ids = rng.permutation(list(truth))[:200].tolist()
        wrong = set(ids[:10])
        other = {"digit 0": "digit 1", "digit 1": "digit 2", "digit 2": "digit 0"}
        campaign.relabel({id: other[truth[id]] if id in wrong else truth[id] for id in ids}, annotator="ann")
        assert campaign.review() == []
        campaign.retrain()
        first = campaign.review(10)
        found = {suspect.id for suspect in first} & wrong
        assert len(found) >= 8
        assert all(first[place].dual >= first[place + 1].dual for place in range(9))
        by_loss = campaign.review(10, by="loss")
        assert len({suspect.id for suspect in by_loss} & wrong) >= 8
        assert all(by_loss[place].loss >= by_loss[place + 1].loss for place in range(9))
        with pytest.raises(InputError, match="pass 'duals' or 'loss'"):
            campaign.review(10, by="age")
        hits = [suspect for suspect in first if suspect.id in wrong]
        assert sum(hit.predicted == truth[hit.id] for hit in hits) >= 7  # by a learner that did not see the wrong label
        hit = hits[0]
        assert hit.annotator == "ann"
        campaign.relabel({hit.id: truth[hit.id]}, annotator="ann")
        assert hit.id not in {
            suspect.id for suspect in campaign.review(200)
        }  # corrected; the next model judges it anew


def test_review_of_a_strategy_without_duals(table, tmp_path):
    with Campaign.create(
        tmp_path / "d.db", table[0], strategy="margin", evaluate=0, model="mlp", automatic=False
    ) as campaign:
        campaign.relabel({id: table[1][id] for id in list(table[1])[:60]} | {"s000": "digit 1", "s001": "digit 2"})
        campaign.retrain()
        assert {suspect.id for suspect in campaign.review(2)} == {"s000", "s001"}


def test_better_than_random_is_answered_with_its_uncertainty(table, tmp_path, answer_all):
    with Campaign.create(
        tmp_path / "d.db",
        table[0],
        evaluate=60,
        held_out_share=0.4,
        random_share=0.2,
        batch=30,
        model="linear",
        automatic=False,
    ) as campaign:
        for _ in range(6):
            answer_all(campaign, table[1])
        campaign.retrain()
        found = campaign.status().comparison
        assert found.labels == 36
        assert found.evaluated_on == 60
        assert found.low <= found.gain <= found.high
        assert found.gain == pytest.approx(found.active - found.random)
        assert "36 active labels" in found.sentence


def test_the_budget_ends_it(table, tmp_path, answer_all):
    with Campaign.create(tmp_path / "d.db", table[0], budget=20, automatic=False) as campaign:
        answer_all(campaign, table[1], 19)
        assert not campaign.status().advice.stop
        answer_all(campaign, table[1], 1)
        assert campaign.status().advice.stop
        assert "budget of 20" in campaign.status().advice.sentence


def test_a_large_pool_is_looked_at_in_part(table, tmp_path, answer_all):
    with Campaign.create(
        tmp_path / "d.db", table[0], look_at=50, batch=10, evaluate=0, model="linear", automatic=False
    ) as campaign:
        looked = []
        for _ in range(2):
            answer_all(campaign, table[1], 20)
            campaign.retrain()
            model = campaign._store.models.newest()
            assert model.report["candidates"] == 50
            looked.append({entry.row for entry in campaign._store.models.ranking(model.number)})
        assert looked[0] != looked[1]


def test_agreement_is_kappa_or_concordance():
    rng = np.random.default_rng(0)
    a, b = rng.integers(4, size=(2, 200)).tolist()
    assert agreement("classification", a, b) == pytest.approx(cohen_kappa_score(a, b))
    assert agreement("classification", a, a) == 1.0
    assert agreement("classification", ["x"] * 5, ["x"] * 5) == 1.0
    x = rng.normal(size=50)
    assert agreement("regression", x.tolist(), x.tolist()) == pytest.approx(1.0)
    assert agreement("regression", x.tolist(), (x + 3).tolist()) < 0.3  # correlated, not equal
    assert agreement("regression", [1.0, 1.0], [1.0, 1.0]) == 1.0


def test_scores_have_intervals():
    measure = scores("classification", ["a"] * 90 + ["b"] * 10, ["a"] * 100)[0]
    assert (measure.name, measure.value, measure.n) == ("accuracy", 0.9, 100)
    assert 0.82 < measure.low < 0.84
    assert 0.94 < measure.high < 0.95
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    p = y + rng.normal(size=200) / 2
    few = scores("regression", [1.0, 1.0, 2.0], [1.0, 1.1, 1.9])
    assert {(one.name, one.low, one.n) for one in few} == {("rmse", None, 3), ("mae", None, 3)}  # no R² of three
    measure = scores("regression", y.tolist(), p.tolist())[0]
    assert measure.value == pytest.approx(r2_score(y, p))
    assert measure.low < measure.value < measure.high


def test_every_metric_the_constant_answer_and_recall_are_measured():
    truth, predicted = ["a"] * 9 + ["b"] * 3, ["a"] * 9 + ["b", "a", "a"]
    chances = np.array([[0.9, 0.1]] * 9 + [[0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    found = scores(
        "classification",
        truth,
        predicted,
        known=["a", "a", "b"],
        classes=["a", "b"],
        probabilities=chances,
        metric="balanced_accuracy",
    )
    by_name = {one.name: one for one in found}
    assert found[0].name == "balanced_accuracy"
    assert found[0].value == pytest.approx(2 / 3)
    assert found[0].low < 2 / 3 < found[0].high
    assert by_name["constant accuracy"].value == 0.75
    assert by_name["constant balanced_accuracy"].value == 0.5
    assert by_name["auroc"].value == 1.0
    assert {"macro_f1", "log_loss"} < set(by_name)
    rare = by_name["recall of b"]
    assert (rare.value, rare.n) == (pytest.approx(1 / 3), 3)
    assert 0 < rare.low < rare.value < rare.high < 1
    met_late = scores("classification", ["a", "c"], ["a", "a"], classes=["a", "b"], probabilities=chances[:2])
    assert {one.name: one.value for one in met_late}["recall of c"] == 0.0


@pytest.mark.parametrize("n", [1, 3, 20])
def test_compositions_keep_their_shares(n):
    settings = Settings("x", {}, {}, evaluate=30, validation=10, held_out_share=0.2, random_share=0.1)
    total: dict[str, int] = {}
    for number in range(1, 601):
        for kind, count in composition(settings, n, number).items():
            total[kind] = total.get(kind, 0) + count
    assert total["evaluate"] == pytest.approx(600 * n * 0.15, abs=1)
    assert total["validate"] == pytest.approx(600 * n * 0.05, abs=1)
    assert total["random"] == pytest.approx(600 * n * 0.1, abs=1)


def test_a_fully_labelled_pool_of_one_class_does_not_fail(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    with Campaign.create(tmp_path / "c.db", frame, evaluate=0, automatic=False) as campaign:
        campaign.relabel(dict.fromkeys("abc", "cat"))
        campaign.retrain()
        assert (campaign.training.has_model, campaign.status().training_state) == (False, "done")
        campaign.relabel({"a": "dog"})
        campaign.retrain()
        assert (campaign.training.has_model, campaign.status().training_state) == (True, "done")


def test_duals_without_labels_do_not_flag_wrong_labels():
    from ally.campaign.training.data import Part
    from ally.campaign.training.review import suspects
    from ally.learning.objectives import PDCL, PDCLUnlabelled
    from ally.learning.training import Training
    from ally.loop import Loop
    from ally.testing.pools import blobs

    scene = blobs("classification", labelled=8)

    def loop(objective):
        quick = Training(epochs=4, batch_size=16)
        return Loop(
            scene.X,
            scene.y,
            strategy="random",
            objective=objective,
            model="linear-network",
            training=quick,
            random_state=0,
        )

    def asked(objective):
        """Whether plain trainings are asked for instead of the loop's own duals."""
        calls = []

        def accumulating():
            calls.append(1)
            return loop(PDCL(eps=0.0, weighted=False))

        rows = tuple(range(8))
        suspects(
            loop(objective), Part(rows, tuple(map(str, rows)), ()), None, accumulating=accumulating, fit=None, seed=0
        )
        return bool(calls)

    assert asked(PDCLUnlabelled(steps=8))
    assert not asked(PDCL(eps=0.0))


def test_the_papers_ally_trains_a_campaign_and_reviews_the_labels_it_trained_on(tmp_path, write_digits, answer_all):
    source, truth = write_digits(tmp_path)
    names = sorted(set(truth.values()))
    # One in six is wrong, so that not every constraint can be met.
    said = {id: names[(names.index(label) + (place % 6 == 0)) % 3] for place, (id, label) in enumerate(truth.items())}
    with Campaign.create(
        tmp_path / "p.db", source, batch=20, evaluate=0, automatic=False, strategy="ally-paper"
    ) as campaign:
        for _ in range(3):
            answer_all(campaign, said, 20)
        campaign.retrain()
        report = campaign._store.models.newest().report
        assert "mlp: the strategy is defined for a network" in report["notes"]
        assert any(
            note.startswith("12 of the 60 labels are held out to stop training early") for note in report["notes"]
        )
        assert "choice" not in report
        assert (report["fit"]["samples"], report["handed"]) == (48, 60)
        # Labels that were held out have no dual; they are reviewed by their loss.
        duals = [entry["dual"] for entry in report["suspects"]]
        assert duals.count(None) == 12
        assert all(np.isfinite(dual) for dual in duals if dual is not None)
        assert 0 < len(campaign.review(60)) <= 48
        assert len(campaign.review(60, by="loss")) == 60
        assert len(campaign.ask(20).samples) == 20
