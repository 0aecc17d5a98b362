"""The exported model is trained on every label; its accuracy is measured on a model that was not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ally import Campaign
from ally.campaign.training.models import handed_model, measured_model, origin
from ally.errors import InputError
from ally.learning.trained import Trained


def rows(n=60, seed=0):
    """A table of two classes that one column separates, and the labels by id."""
    values = np.random.default_rng(seed).normal(size=(n, 3))
    frame = pd.DataFrame(values, columns=list("abc"))
    frame.insert(0, "id", [f"r{row:02}" for row in range(n)])
    return frame, {f"r{row:02}": "high" if values[row, 0] > 0 else "low" for row in range(n)}


def campaign_of(frame, **settings):
    return Campaign.create("memory", frame, **{"strategy": "margin", "batch": 10, "model": "mlp"} | settings)


@pytest.fixture(scope="module")
def measured():
    """24 training labels, 12 for evaluation, of which 3 are of a class that no training label has, 6 to stop by."""
    frame, truth = rows()
    with campaign_of(frame, evaluate=12, validation=6) as campaign:
        roles = {role: [s.id for s in campaign._store.samples.all(role)] for role in ("pool", "evaluate", "validate")}
        labelled = [*roles["pool"][:24], *roles["evaluate"], *roles["validate"]]
        campaign.relabel({id: truth[id] for id in labelled} | dict.fromkeys(roles["evaluate"][:3], "odd"))
        campaign.retrain()
        yield campaign


def test_the_final_model_is_trained_on_every_label_and_says_so(measured):
    model, line = measured.training.model(), measured.status().model
    assert model.about["labels"] == 42
    assert (line.labels, line.handed, line.evaluated_on) == (24, 42, 12)
    figure = model.about["measured"]
    assert {name: getattr(line, name) for name in ("labels", "value", "low", "high", "evaluated_on")} == {
        name: figure[name] for name in ("labels", "value", "low", "high", "evaluated_on")
    }
    assert origin(model) == (
        f"the model is trained on all 42 labels; the one that was measured, on 24 of them: accuracy {line.value:.3f} "
        f"(95 % interval {line.low:.3f} to {line.high:.3f}, 12 evaluation samples)"
    )
    assert measured.predict().attrs["model"] == origin(model)


def test_only_the_final_model_learns_from_held_out_labels(measured):
    weights = measured._store.models.weights(1)
    assert set(handed_model(weights).fit.classes) == {"high", "low", "odd"}
    assert set(measured_model(weights).fit.classes) == {"high", "low"}
    assert measured.training.evaluate().value == measured.status().model.value


def test_an_exported_model_says_so_too(measured, tmp_path):
    measured.training.model().write(tmp_path / "m.safetensors")
    assert origin(Trained.read(tmp_path / "m.safetensors")) == origin(measured.training.model())


def test_without_held_out_labels_one_model_is_both():
    frame, truth = rows()
    with campaign_of(frame, evaluate=0) as campaign:
        campaign.relabel({id: truth[id] for id in list(truth)[:20]})
        campaign.retrain()
        weights = campaign._store.models.weights(1)
        assert handed_model(weights).to_bytes() == measured_model(weights).to_bytes() == weights
        assert origin(campaign.training.model()) == "the model is trained on all 20 labels; it is not measured"
        assert campaign.status().model.handed == 20


def test_a_model_of_an_earlier_version_is_handed_out_unchanged(measured):
    old = measured_model(measured._store.models.weights(1)).with_about({"fingerprint": {}}).to_bytes()
    assert handed_model(old).to_bytes() == old
    assert origin(handed_model(old)) == (
        "the model does not say on how many labels it was trained; retrain to get one that uses every label"
    )


def test_cross_validation_holds_nothing_out_and_says_what_it_is():
    frame, truth = rows()
    with campaign_of(frame, evaluate="cv") as campaign:
        assert campaign.status().evaluate.samples == 0
        for number, labels in enumerate((8, 20, 30, 40), start=1):
            campaign.relabel({id: truth[id] for id in list(truth)[:labels]})
            campaign.retrain()
            line = campaign.status().model
            assert (line.number, line.labels, line.handed, line.by) == (number, labels, labels, "cv")
            assert line.evaluated_on == (0 if labels < 10 else labels)
        assert 0.7 < line.value <= line.high
        chosen = "by cross-validation on the 40 labels that were chosen, which are not a random sample"
        assert line.figure.sentence.endswith(f"{chosen})")
        assert origin(campaign.training.model()) == f"the model is trained on all 40 labels: {line.figure.sentence}"
        advice = campaign.status().advice
        assert "the curve is cross-validated on the labels that were chosen, which are not a random sample" in (
            advice.reasons
        )
        assert "no samples are held out" not in advice.sentence
        assert advice.gain is not None
        with pytest.raises(InputError, match="no samples are held out, as evaluate='cv'"):
            campaign.training.evaluate()
        campaign.training.hold_out(10)
        assert campaign.settings.evaluate == 10
        status = campaign.status()
        assert {line.by for line in status.curve} == {"cv"}  # what was measured so far stays what it is
        assert status.advice.gain is None


def test_cross_validation_uses_models_that_did_not_see_the_label():
    """Labels by the toss of a coin: a model that saw them would know many."""
    frame, truth = rows(80)
    toss = np.random.default_rng(3).integers(2, size=80)
    with campaign_of(frame, evaluate="cv") as campaign:
        campaign.relabel({id: f"side {side}" for id, side in zip(truth, toss.tolist(), strict=True) if id < "r70"})
        campaign.retrain()
        line = campaign.status().model
        assert line.evaluated_on == 70
        assert line.value < 0.7


def test_the_only_label_of_a_class_is_not_asked_about():
    frame, truth = rows()
    with campaign_of(frame, evaluate="cv") as campaign:
        campaign.relabel({id: f"class {number}" for number, id in enumerate(list(truth)[:12])})
        campaign.retrain()
        assert campaign.status().model.figure is None
        assert origin(campaign.training.model()) == "the model is trained on all 12 labels; it is not measured"


def test_cross_validation_of_numbers():
    frame, _ = rows()
    targets = dict(zip(frame["id"], (3 * frame["a"] + 1).tolist(), strict=True))
    with campaign_of(frame, evaluate="cv", task="regression", strategy="coreset") as campaign:
        campaign.relabel({id: targets[id] for id in list(targets)[:40]})
        campaign.retrain()
        line = campaign.status().model
        assert (line.metric, line.evaluated_on) == ("r2", 40)
        assert line.low < line.value < line.high


@pytest.mark.parametrize("evaluate", ["vc", -1, 2.5])
def test_bad_values_of_evaluate_are_refused(evaluate):
    with pytest.raises(InputError, match="evaluate"):
        campaign_of(rows()[0], evaluate=evaluate)


def test_values_that_the_model_cannot_read_are_said(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(30), "a": rng.normal(size=30), "b": rng.normal(size=30)})
    frame["label"] = ["high" if n < 12 and frame["a"][n] > 0 else "low" if n < 12 else None for n in range(30)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = {"automatic": False, "model": "linear", "evaluate": 0}
    with Campaign.create(tmp_path / "t.db", tmp_path / "t.csv", **options) as campaign:
        campaign.retrain()
        assert campaign.predict().attrs["notes"] == []
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    with Campaign.open(tmp_path / "t.db") as campaign:
        (note,) = campaign.predict().attrs["notes"]
        assert note.startswith("36 values are not what the model was trained on, such as 12: column 'a' holds")
