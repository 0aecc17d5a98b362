"""Campaigns that 0.1.0 wrote are opened, keep what they had, and go on.

``campaigns-0.1.0.zip`` holds `mails.db`, 40 texts of which 12 are labelled and never trained on, and `sizes.db`, 40
rows of a table with a trained linear network.
"""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import ally

KEPT = Path(__file__).parent / "data" / "campaigns-0.1.0.zip"


@pytest.fixture
def old(tmp_path, monkeypatch):
    with zipfile.ZipFile(KEPT) as kept:
        kept.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_texts_keep_their_features(old):
    with ally.Campaign.open(old / "mails.db") as campaign:
        assert len(campaign.status().classes) == 2
        samples = campaign.source.samples
        features = samples.features([sample.id for sample in samples.scan()])
        assert features.shape == (4096,)
        assert np.square(features.read(np.arange(40))).sum(axis=1) == pytest.approx(np.ones(40), rel=1e-5)


def test_a_trained_network_predicts(old):
    with ally.Campaign.open(old / "sizes.db") as campaign:
        predicted = campaign.predict()
    assert len(predicted) == 28
    assert "retrain to get one that uses every label" in predicted.attrs["model"]
    seen = predicted.set_index("id")
    assert seen["label"][["00", "03", "38"]].tolist() == ["food", "food", "sport"]
    assert seen["probability"][["00", "03", "38"]].tolist() == pytest.approx([0.616216, 0.811853, 0.661165], abs=1e-4)


def test_a_campaign_keeps_its_network_until_it_is_changed(old):
    with ally.Campaign.open(old / "mails.db") as campaign:
        assert campaign.settings.model is None
        campaign.retrain()
        assert campaign.training.model().fit.name == "mlp"
        assert campaign.training.model().fit.shape == (4096,)
        campaign.change(model="auto")
        campaign.retrain()
        assert any("chosen by cross-validation" in note for note in campaign.status().notes)


def test_a_new_campaign_chooses_its_learner(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    for given in ({}, {"model": None}, {"model": "auto"}):
        with ally.Campaign.create(
            tmp_path / f"{len(given)}{given.get('model')}.db", X, automatic=False, **given
        ) as made:
            assert made.settings.model == "auto"
