"""Training in its own process: it never blocks asking, a crash does no harm, and it is retried."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ally import Campaign
from ally.campaign.training import worker
from ally.campaign.training.schedule import ATTEMPTS, BEGUN, LOCK, due
from ally.errors import InputError, StoreError

PATIENCE = 90.0


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def test_answers_start_a_training_and_asking_goes_on_meanwhile(table, tmp_path, answer_all):
    with Campaign.create(tmp_path / "d.db", table[0], batch=20, evaluate=0, model="linear") as campaign:
        wait_until(lambda: campaign.status().training_state == "done")  # the cold start
        assert campaign.status().model.labels == 0
        answer_all(campaign, table[1], 30)
        slowest = 0.0
        while campaign.status().model.labels == 0:
            began = time.perf_counter()
            query = campaign.ask(1)
            campaign.tell(query, {query.ids[0]: table[1][query.ids[0]]})
            slowest = max(slowest, time.perf_counter() - began)
            time.sleep(0.05)
        assert slowest < 2.0
        assert campaign.status().model.labels >= 30
        wait_until(lambda: campaign.status().training_state != "running")


def test_one_worker_at_a_time(table, tmp_path, answer_all):
    with Campaign.create(
        tmp_path / "d.db", table[0], batch=20, evaluate=0, model="linear", automatic=False
    ) as campaign:
        answer_all(campaign, table[1], 30)
        for _ in range(3):
            campaign.retrain(wait=False)
        wait_until(lambda: campaign.status().model is not None)
        wait_until(lambda: campaign.status().training_state == "done")
        assert len([event for event in campaign._store.events() if event.kind == BEGUN]) == 1


def test_a_killed_worker_is_reported_and_replaced(table, tmp_path, answer_all):
    with Campaign.create(
        tmp_path / "d.db", table[0], batch=20, evaluate=0, model="linear", automatic=False
    ) as campaign:
        answer_all(campaign, table[1], 30)
        assert campaign.retrain(wait=False) is None
        wait_until(lambda: campaign.status().training_state == "running")
        wait_until(lambda: any(event.kind == BEGUN for event in campaign._store.events()))
        os.kill(worker._children[str(tmp_path / "d.db")].pid, signal.SIGKILL)
        wait_until(lambda: campaign.status().training_state != "running")
        assert campaign.status().training_state == "interrupted"
        assert len(campaign.ask(5)) == 5
        assert campaign.training.while_due() == 1
        assert campaign.status().training_state == "done"


def test_a_failure_is_recorded_and_retries_are_limited(table, tmp_path, answer_all):
    source, truth = table
    with Campaign.create(tmp_path / "d.db", source, batch=10, evaluate=0, model="linear", automatic=False) as campaign:
        answer_all(campaign, truth, 20)
        source.rename(tmp_path / "away.csv")
    with Campaign.open(tmp_path / "d.db") as campaign:
        with pytest.raises(Exception, match="is missing"):
            campaign.retrain()
        status = campaign.status()
        assert status.training_state == "failed"
        assert "is missing" in status.training_error
        assert campaign.training.while_due() == 0
        assert len([event for event in campaign._store.events() if event.kind == BEGUN]) == ATTEMPTS
        assert not due(campaign._store, 10)
        assert len(campaign.ask(5)) == 5  # asking goes on
        (tmp_path / "away.csv").rename(source)
        answer_all(campaign, truth, 5)
        assert due(campaign._store, 10)  # new answers, new hope
        assert campaign.training.while_due() == 1
        assert campaign.status().training_state == "done"


def test_a_training_by_hand_does_not_ask_whether_it_is_due(table, tmp_path, answer_all):
    with Campaign.create(
        tmp_path / "d.db", table[0], batch=20, evaluate=0, model="linear", automatic=False
    ) as campaign:
        answer_all(campaign, table[1], 20)
        campaign.retrain()
        campaign.retrain(wait=False)
        wait_until(lambda: len(campaign.status().curve) == 2)


def test_a_store_that_cannot_be_written_ends_the_worker(table, tmp_path, answer_all):
    """No attempt would be on record, so it would try for ever."""
    with Campaign.create(tmp_path / "d.db", table[0], batch=10, evaluate=0, automatic=False) as campaign:
        answer_all(campaign, table[1], 20)
        (tmp_path / "d.db").unlink()
        (tmp_path / "d.db").mkdir()
        with pytest.raises(StoreError):
            campaign.training.while_due()


def test_with_by_hand_no_training_starts(table, tmp_path, answer_all):
    with Campaign.create(tmp_path / "d.db", table[0], batch=5, automatic=False) as campaign:
        answer_all(campaign, table[1], 20)
        assert not campaign.training.start_if_due()
        assert campaign.status().training_state == "none"


def test_a_password_is_not_among_the_arguments(table, new_database):
    url = new_database()
    with Campaign.create(url, table[0], automatic=False, model="linear") as campaign:
        assert worker.start(url, campaign.id)
        arguments = Path(f"/proc/{worker._children[url].pid}/cmdline").read_bytes()
        assert b"postgresql" not in arguments
        wait_until(lambda: campaign.status().training_state == "done")


@pytest.mark.parametrize(("set_to", "cores", "used"), [(3, 8, 3), (4096, 8, 8)])
def test_training_in_the_background_has_as_many_threads_as_were_set_and_there_are(
    table, tmp_path, monkeypatch, set_to, cores, used
):
    monkeypatch.setattr(worker.os, "cpu_count", lambda: cores)
    with Campaign.create(tmp_path / "d.db", table[0], automatic=False, threads=set_to) as campaign:
        campaign.training.start()
        process = worker._children[str(tmp_path / "d.db")]
        try:
            environment, place = b"", Path(f"/proc/{process.pid}/environ")
            while not environment and process.poll() is None:  # Linux fills it in a moment after the program began.
                environment = place.read_bytes()
            assert b"OMP_NUM_THREADS=%d" % used in environment.split(b"\0")
        finally:
            process.kill()
            process.wait()
        with pytest.raises(InputError, match="threads=0"):
            campaign.change(threads=0)


def test_checking_for_a_training_releases_the_lock(table, tmp_path):
    with Campaign.create(tmp_path / "d.db", table[0], automatic=False) as campaign:
        campaign.status()
        with campaign._store.exclusive(LOCK) as mine:
            assert mine
            assert campaign.status().training_state == "running"
