"""The progress of a training, as others see it."""

from __future__ import annotations

import pytest

from ally import Campaign
from ally.campaign.training.progress import STAGE, STAGES, StageRecorder, underway
from ally.campaign.training.schedule import begin


def test_status_says_what_a_training_is_doing_and_how_long_it_may_take(table, tmp_path, answer_all):
    place, options = tmp_path / "d.db", {"evaluate": 0, "automatic": False, "batch": 20, "model": "mlp"}
    with Campaign.create(place, table[0], **options) as campaign, Campaign.open(place) as other:
        seen = []

        def look(stage: str, done: int, total: int) -> None:
            if stage in ("train", "embed") and done in (total // 2, total):
                seen.append((other.status().underway, other.page.pulse().underway))

        answer_all(campaign, table[1], 20)
        campaign.retrain(progress=look)
        first = [status for status, _ in seen]
        assert {"training", "ranking"} <= {found.stage for found in first}
        assert not any(found.whole for found in first)
        seen.clear()
        answer_all(campaign, table[1], 20)
        campaign.retrain(progress=look)
        assert all(found.whole and found.seconds_left is not None and 0 < found.share <= 1 for found, _ in seen)
        assert [found.stage for found, _ in seen] == [found.stage for _, found in seen]
        places = [STAGES.index(found.stage) for found, _ in seen]
        assert places == sorted(places)
        assert other.status().underway is None
        assert len([event for event in campaign._store.events() if event.kind == STAGE]) <= 2 * 10 * len(STAGES)


@pytest.fixture
def store(tmp_path):
    with Campaign.create("memory", [[0.0], [1.0]], automatic=False) as campaign:
        yield campaign._store


def put_model(store, clock, stages, **report):
    report = {"notes": [], "stages": stages, **report}
    store.models.put(clock.now, seen=0, labels=0, weights=None, report=report, ranking=[], measures=[])


def test_the_time_left_is_that_of_the_stage_and_of_those_to_come(store, clock):
    put_model(store, clock, {"reading": 2.0, "training": 10.0, "ranking": 4.0, "measuring": 6.0})
    begun = begin(store, clock.now, {})
    assert underway(store, clock.now) is None
    recorder = StageRecorder(store, clock, begun, None)
    recorder.enter("reading")
    clock.now += 2
    recorder("train", 0, 100)
    clock.now += 4
    found = underway(store, clock.now)
    assert (found.stage, found.seconds_left) == ("training", 10 - 4 + 4 + 6)
    recorder("train", 20, 100)  # slower than before: 4 s for a fifth
    clock.now += 1
    found = underway(store, clock.now)
    assert found.seconds_left == pytest.approx(4 / 0.2 * 0.8 - 1 + 4 + 6)
    assert found.share == pytest.approx(7 / (7 + found.seconds_left))
    recorder.enter("measuring")
    recorder("train", 50, 100)  # of a model that is trained to measure
    assert underway(store, clock.now).stage == "measuring"


@pytest.mark.parametrize("cold", [False, True])
def test_the_first_training_tells_of_its_stage_alone(store, clock, cold):
    if cold:
        put_model(store, clock, {"ranking": 1.0}, cold="there are no labels yet")
    recorder = StageRecorder(store, clock, begin(store, clock.now, {}), None)
    recorder("encoding", 0, 50)
    assert underway(store, clock.now).seconds_left is None
    clock.now += 6
    recorder("encoding", 25, 50)
    found = underway(store, clock.now)
    assert (found.share, found.seconds_left, found.whole) == (0.5, 6.0, False)
