"""Models and a campaign that 0.1.0 wrote predict what they predicted then; `made_by_0_1_0/make_files.py` made them."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ally import Campaign
from ally.data import as_source
from ally.errors import DataError
from ally.learning.trained import Trained

FILES = Path(__file__).parent / "made_by_0_1_0"
X = np.random.default_rng(0).normal(size=(40, 3)).round(2)
VALUES = json.loads((FILES / "values.json").read_text())
UNCHECKED = "neighbours"


@pytest.mark.parametrize("name", [name for name in VALUES if name != UNCHECKED])
def test_a_model_predicts_the_same(name):
    trained = Trained.read(FILES / f"{name}.safetensors")
    seen = trained.look(as_source(X))
    values = seen.predictions if seen.probabilities is None else seen.probabilities[:, 1]
    np.testing.assert_allclose(values.numpy(), VALUES[name], atol=1e-6)
    assert trained.about == {"labels": 40}


def test_an_estimator_that_cannot_be_checked_is_trained_again():
    with pytest.raises(DataError, match=r"KNeighborsClassifier.*cannot be checked; train it again"):
        Trained.read(FILES / f"{UNCHECKED}.safetensors")


def test_a_campaign_predicts_the_same(tmp_path):
    with zipfile.ZipFile(FILES / "campaign.zip") as archive:
        archive.extractall(tmp_path)
    with Campaign.open(tmp_path / "pets.db") as campaign:
        predicted = campaign.predict()
    before = pd.read_csv(tmp_path / "predicted.csv")
    assert predicted["id"].tolist() == before["id"].tolist()
    assert predicted["label"].tolist() == before["label"].tolist()
    np.testing.assert_allclose(predicted["probability"], before["probability"], atol=1e-6)
