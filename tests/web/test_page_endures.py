"""The page while what is under it fails: whatever it acknowledged is on record, and the rest can be sent again."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest_web import CLASSES, serving, until, write_photos

from ally import Campaign
from ally.web.server import Plan
from store_server import places, programs

SETTINGS = {"classes": CLASSES, "automatic": False, "evaluate": 0}
N = 60


@pytest.fixture(scope="module")
def photos(folder):
    write_photos(folder / "photos", N, side=8)
    return folder / "photos"


@pytest.fixture
def place(tmp_path, photos):
    Campaign.create(tmp_path / "a.db", photos, **SETTINGS).close()
    return tmp_path / "a.db"


def ids() -> Iterator[str]:
    return (f"{number:05}.png" for number in range(N))


def send(client, id, label=CLASSES[0]):
    """An answer under a key of its own: it may be sent again."""
    return client.post("/answers", json={"answers": [{"id": id, "key": id, "label": label}]})


def is_recorded(response):
    return response.status_code == 200 and response.json()["outcomes"][0]["state"] == "recorded"


def answers_of(campaign):
    return [answer.sample for answer in campaign.answers.all()]


@pytest.mark.long
@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not here")
def test_postgresql_killed_under_the_page(tmp_path, photos):
    """Twice, while two people label; both servers of the campaign go on by themselves."""
    with places("postgresql", tmp_path) as (new_place, crash):
        url = new_place()
        Campaign.create(url, photos, **SETTINGS).close()
        with (
            serving(Campaign.open(url), Plan(share=True)) as one,
            serving(Campaign.open(url), Plan(share=True)) as other,
        ):
            acknowledged, refused, ended = [], [], threading.Event()

            def label(served, name, mine):
                access = served.ready.page.access
                cookie = {access.cookie_name: access.exchange(access.new_link(name))}
                with served.client(cookies=cookie) as client:
                    for id in itertools.islice(itertools.cycle(mine), 100_000):
                        if ended.is_set() and len({*mine} - {*acknowledged}) == 0:
                            return
                        response = send(client, id)
                        if is_recorded(response):
                            acknowledged.append(id)
                        else:
                            assert response.status_code == 503, response.text
                            refused.append(id)

            halves = [*ids()][::2], [*ids()][1::2]
            people = [
                threading.Thread(target=label, args=call)
                for call in zip((one, other), ("ann", "ben"), halves, strict=True)
            ]
            for person in people:
                person.start()
            for count in (1, 3):
                until(lambda count=count: len(acknowledged) > 10 * count, 60)
                crash()
            ended.set()
            for person in people:
                person.join(60)
                assert not person.is_alive()
            assert sorted(answers_of(one.campaign)) == [*ids()], "lost, or twice"
            assert one.campaign.check() == []


def test_a_full_disk_under_the_page(place):
    """Here the file may take no more pages; what comes then is refused in words and can be sent again."""
    with serving(Campaign.open(place)) as served, served.client() as client:
        engine = served.campaign._store._database.engine
        limit = set_page_limit(engine, 1)
        acknowledged, refused = [], None
        for id in ids():
            client.post("/notes", json={"id": id, "key": f"note {id}", "text": "x" * 2000})
            response = send(client, id)
            if not is_recorded(response):
                refused = id, response
                break
            acknowledged.append(id)
        id, response = refused
        assert response.status_code == 503
        assert "disk" in response.json()["detail"]
        assert answers_of(served.campaign) == acknowledged
        assert client.get("/progress").status_code == 200, "what is there can be seen"
        set_page_limit(engine, limit)
        assert is_recorded(send(client, id))
        assert answers_of(served.campaign) == [*acknowledged, id]
        assert served.campaign.check() == []


def set_page_limit(engine, more):
    """How many pages the file may grow by; all connections that are open or come back have it."""
    with engine.connect() as connection:
        before = connection.exec_driver_sql("PRAGMA max_page_count").scalar_one()
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + more}")
    return before


READ_ONLY = """
import os, sys
import ally.campaign.agreement, ally.campaign.status, ally.campaign.training.run, ally.learning.trained
from ally import Campaign
from ally.web.server import Plan, prepare
os.setgid(65534), os.setuid(65534)
with Campaign.open(sys.argv[1]) as campaign:
    ready = prepare(campaign, Plan())
    ready.serve(lambda: print(ready.address, flush=True))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write")
def test_a_read_only_campaign_is_shown_and_takes_no_answer():
    import httpx

    open_folder = Path(tempfile.mkdtemp())  # other users can reach it, unlike pytest's
    place = open_folder / "a.db"
    open_folder.chmod(0o755)
    write_photos(open_folder / "photos", N, side=8)
    with Campaign.create(place, open_folder / "photos", **SETTINGS) as made:
        made.relabel({"00000.png": CLASSES[0]})
    place.chmod(0o444)
    open_folder.chmod(0o555)
    environment = {**os.environ, "ALLY_STATE": str(open_folder / "none"), "ALLY_CACHE": str(open_folder / "none")}
    process = subprocess.Popen(
        [sys.executable, "-c", READ_ONLY, place], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    try:
        address = process.stdout.readline().decode().strip().rstrip("/")
        assert address.startswith("http://"), address + process.stdout.read().decode()
        with httpx.Client(base_url=f"{address}/api/v1", headers={"Origin": address}, timeout=30) as client:
            for path in ("/campaign", "/progress", "/review", "/answers"):
                assert client.get(path).status_code == 200, path
            response = send(client, "00001.png")
            assert response.status_code == 503
            assert "read" in response.json()["detail"]
    finally:
        open_folder.chmod(0o755)
        process.terminate()
        printed, _ = process.communicate(timeout=20)
    assert b"Traceback" not in printed
    with Campaign.open(place) as campaign:
        assert answers_of(campaign) == ["00000.png"]
    shutil.rmtree(open_folder)


def test_a_clock_that_goes_back_and_forth(tmp_path, photos):
    """Nothing is lost or taken twice, whatever the time of an answer is, and nobody waits for ever."""
    now = [1e9]
    campaign = Campaign.create(tmp_path / "clock.db", photos, lease_seconds=60.0, clock=lambda: now[0], **SETTINGS)
    with serving(campaign) as served, served.client() as client:
        told = []
        for number, time in enumerate((1e9, 0.0, 2e9, 1e9 - 86400, 1e9 + 30, 1.0, 3e9)):
            now[0] = time
            query = client.post("/queries", json={"key": f"q{number}", "n": 3})
            assert query.status_code == 200, query.text
            for one in query.json()["samples"]:
                if one["id"] not in told:
                    assert is_recorded(send(client, one["id"]))
                    told.append(one["id"])
            for path in ("/progress", "/review", "/answers", "/campaign"):
                assert client.get(path).status_code == 200, path
        assert sorted(answers_of(campaign)) == sorted(told)
        assert len(told) >= 9
        assert campaign.check() == []
        now[0] = 4e9
        assert len(client.post("/queries", json={"key": "last", "n": N}).json()["samples"]) == N - len(told)


def test_two_servers_deal_each_sample_once(place):
    """Two processes' worth of pages on one file: leases, answers and undos are the file's, not the server's."""
    with (
        serving(Campaign.open(place)) as one,
        serving(Campaign.open(place)) as other,
        one.client() as here,
        other.client() as there,
    ):
        dealt = []
        for number in range(3):
            for name, client in (("here", here), ("there", there)):
                query = client.post("/queries", json={"key": f"{name} {number}", "n": 5}).json()
                dealt += [sample["id"] for sample in query["samples"]]
        assert len(set(dealt)) == len(dealt) == 30
        assert is_recorded(send(here, dealt[0]))
        repeated = send(there, dealt[0]).json()["outcomes"][0]
        assert repeated["repeated"]
        stale = {"id": dealt[0], "key": "stale", "label": CLASSES[1], "expects": None}
        assert there.post("/answers", json={"answers": [stale]}).json()["outcomes"][0]["state"] == "conflict"
        assert there.post("/undo", json={"key": "u"}).json()["id"] == dealt[0]
        assert one.campaign.labels() == other.campaign.labels() == {}
