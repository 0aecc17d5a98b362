"""Photos with an encoder: cross-validation decides whether a campaign learns from its vectors or from the pixels."""

import numpy as np
import pytest

from ally import Campaign
from ally.data.encoders import Function


def brightness(pictures):
    """The mean of the whole picture, which hardly separates the digits."""
    return [[picture.mean(), 1.0] for picture in pictures]


def hole(pictures):
    """The mean of the middle, which separates 0 from 1."""
    return [[picture[:, 12:20, 14:18].mean(), 1.0] for picture in pictures]


@pytest.mark.parametrize(("call", "features"), [(brightness, "pixels"), (hole, None)])
def test_what_is_learned_better_is_learned_from(tmp_path, photos, answer_all, call, features):
    folder, truth = photos
    encoder = Function(call, call.__name__, "image", side=32)
    settings = {"strategy": "random", "evaluate": 0, "automatic": False, "encoder": encoder}
    with Campaign.create(tmp_path / "c.db", folder, **settings) as campaign:
        answer_all(campaign, truth, 14)
        campaign.retrain()
        first = campaign._store.models.newest().report
        assert first.get("features") == features
        words = "learns from pixels" if features else "learns from the encoder's vectors"
        assert any(words in note and "cross-validation found" in note for note in campaign.status().notes)
        said = campaign.predict().set_index("id")["label"]
        assert np.mean([truth[id] == label for id, label in said.items()]) > 0.8
        answer_all(campaign, truth, 3)
        campaign.retrain()
        second = campaign._store.models.newest()
        assert second.report["choice"] == first["choice"]
        assert second.report.get("features") == features
        campaign.training.model().write(tmp_path / "m.safetensors")
    with Campaign.open(tmp_path / "c.db", encoder=encoder) as campaign:
        assert len(campaign.predict()) == 60 - 17
