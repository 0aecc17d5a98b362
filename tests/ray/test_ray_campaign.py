"""Trainings of a campaign whose unlabelled samples are looked at on Ray."""

import time

import numpy as np
import pytest
from PIL import Image
from ray._private.state import jobs
from sklearn.datasets import load_digits

from ally import Campaign
from ally.campaign.source import unreadable
from ally.errors import InputError
from ally.execution import ray as on_ray

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.usefixtures("cluster"), pytest.mark.long]
SETTINGS = {"batch": 10, "evaluate": 0, "model": "linear", "strategy": "margin", "automatic": False, "encoder": "none"}


@pytest.fixture
def photos(tmp_path):
    """A folder of pictures of two kinds, and their labels."""
    X, y = load_digits(n_class=2, return_X_y=True)
    (tmp_path / "photos").mkdir()
    for number, values in enumerate(X[:60]):
        Image.fromarray((values.reshape(8, 8) * 15.9).astype(np.uint8)).save(tmp_path / "photos" / f"{number:02d}.png")
    return tmp_path / "photos", {f"{number:02d}.png": str(label) for number, label in enumerate(y[:60])}


def labelled(place, photos, engine):
    campaign = Campaign.create(place, photos[0], engine=engine, **SETTINGS)
    query = campaign.ask(12)
    campaign.tell(query.id, {id: photos[1][id] for id in query.ids})
    return campaign


def test_a_training_on_ray_asks_for_the_same_samples(photos, tmp_path):
    found = []
    for engine in ("local", "ray"):
        with labelled(tmp_path / f"{engine}.db", photos, engine) as campaign:
            (photos[0] / "59.png").write_bytes(b"no image any more")
            campaign.retrain(wait=True)
            query = campaign.ask(10)
            found.append((list(query.ids), unreadable(campaign._store)))
            Image.new("L", (8, 8)).save(photos[0] / "59.png")
    assert found[0] == found[1]
    assert list(found[0][1]) == ["59.png"]
    with pytest.raises(InputError, match="engine='spark' is not known"), Campaign.open(tmp_path / "ray.db") as campaign:
        campaign.change(engine="spark")


@pytest.mark.slow
@pytest.mark.ray
def test_a_training_in_the_background_connects_to_the_cluster(photos, tmp_path, cluster, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", cluster.get_runtime_context().gcs_address)
    on_ray.release()  # the actors of this process hold all CPUs
    before = len(jobs())
    with labelled(tmp_path / "ray.db", photos, "ray") as campaign:
        campaign.retrain(wait=False)
        deadline = time.monotonic() + 120
        while campaign.status().training_state != "done":
            assert time.monotonic() < deadline, campaign.status()
            time.sleep(0.2)
        assert campaign.status().model.labels == 12
    assert len(jobs()) == before + 1
