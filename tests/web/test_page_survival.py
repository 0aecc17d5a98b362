"""Servers that are killed, a database on a server, many samples: nothing is lost, nothing twice, nothing slow."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from conftest_web import CLASSES, Running, free_port, serving, until, write_photos
from screens import Screen

from ally import Campaign

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]
KEYS = {name: str(number + 1) for number, name in enumerate(CLASSES)}


def test_the_server_is_killed_while_somebody_labels(browser, folder):
    truth = write_photos(folder / "killed", 80)
    place = folder / "killed.db"
    Campaign.create(place, folder / "killed", classes=CLASSES, automatic=False, evaluate=0).close()
    running = Running(str(place), free_port()).start()
    screen = Screen(browser, f"{running.origin}/")
    done = screen.label(truth, KEYS, 4)
    until(
        lambda: (
            screen.run("performance.getEntriesByType('resource').filter(e => e.name.includes('size=view')).length") > 8
        )
    )
    running.kill()
    done += screen.label(truth, KEYS, 4)
    until(lambda: "offline" in screen.dot)
    waiting = int(screen.dot.split()[1])
    assert waiting >= 4, "the page says what is pending"
    running.start()
    screen.saved()
    done += screen.label(truth, KEYS, 8)
    screen.saved()
    screen.close()
    assert running.kill(2) == 0
    with Campaign.open(place) as campaign:
        record = [(said.sample, said.value) for said in campaign.answers.all()]
    assert sorted(record) == sorted((id, truth[id]) for id in done), "lost, or twice"
    assert len(set(done)) == 16


def test_a_campaign_on_postgresql(browser, folder, new_database):
    truth = write_photos(folder / "server", 30)
    campaign = Campaign.create(new_database(), folder / "server", classes=CLASSES, automatic=False, evaluate=0)
    with serving(campaign) as served:
        screen = Screen(browser, served.address)
        done = screen.label(truth, KEYS, 8)
        screen.press("z")
        until(lambda: screen.id == done[-1])
        screen.saved()
        screen.page.reload()
        until(lambda: screen.ready() == done[-1] or screen.id, what="the page again")
        screen.label(truth, KEYS, 3)
        screen.saved()
        labels = campaign.labels()
        assert labels == {id: truth[id] for id in labels}
        assert len(labels) == 10
        assert screen.trouble == []
        screen.close()


def latencies(browser, folder, n, answers, training):
    """Milliseconds from key to next sample, of `answers` answers in a campaign of n samples."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 8)).round(4), columns=[f"measure {k}" for k in range(8)])
    frame.insert(0, "id", [f"r{row}" for row in range(n)])
    frame.to_csv(folder / f"rows{n}.csv", index=False)
    campaign = Campaign.create(
        folder / f"rows{n}.db",
        folder / f"rows{n}.csv",
        id_column="id",
        classes=["low", "high"],
        automatic=training,
        batch=20,
        strategy="margin",
    )
    with serving(campaign) as served:
        screen = Screen(browser, served.address)
        screen.ready()
        for number in range(answers):
            id = screen.ready()
            screen.press("1" if number % 3 else "2")
            until(lambda id=id: screen.id != id)
        screen.saved()
        found = screen.times()
        state = campaign.status().training_state
        screen.close()
        assert len(campaign.labels()) == answers
    return found, state


def test_the_next_sample_is_there_at_once(browser, folder):
    found, _ = latencies(browser, folder, 2000, 60, training=False)
    assert np.median(found) <= 50, sorted(found)[-5:]
    # Other tests may hold up one answer for a moment; a slow page holds up some of every twenty.
    assert min(max(twenty) for twenty in np.array_split(found, 3)) <= 150, sorted(found)[-5:]


@pytest.mark.slow
def test_the_next_sample_is_there_at_once_among_ten_thousand_while_training(browser, folder):
    found, state = latencies(browser, folder, 10_000, 300, training=True)
    print(f"median {np.median(found):.1f} ms, p99 {np.quantile(found, 0.99):.1f} ms; training {state}")
    assert state in ("running", "done")
    assert np.median(found) <= 50
    assert np.quantile(found, 0.99) <= 150


@pytest.mark.slow
def test_the_map_of_ten_thousand_moves(browser, folder):
    """Scripting at most 8 ms a frame while it moves (the median; the worst is printed)."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(10_000, 6)).round(4), columns=list("abcdef"))
    frame.insert(0, "id", [f"r{row}" for row in range(10_000)])
    frame.to_csv(folder / "map.csv", index=False)
    campaign = Campaign.create(
        folder / "map.db",
        folder / "map.csv",
        id_column="id",
        classes=["low", "high"],
        automatic=False,
        strategy="margin",
        model="linear",
    )
    truth = dict(zip(frame["id"], np.where(frame["a"] > 0, "high", "low").tolist(), strict=True))
    campaign.relabel({id: truth[id] for id in frame["id"][:1000]})
    campaign.retrain()
    with serving(campaign) as served:
        screen = Screen(browser, f"{served.address}progress")
        until(lambda: "samples" in screen.page.locator(".map .quiet").first.inner_text(), 40)
        canvas = screen.page.locator("canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        screen.page.mouse.move(box["x"] + 300, box["y"] + 200)
        screen.page.mouse.down()
        for step in range(120):
            screen.page.mouse.move(box["x"] + 300 + step, box["y"] + 200 + step // 2)
            time.sleep(0.016)
        screen.page.mouse.up()
        times = screen.run("performance.getEntriesByName('ally map').map(each => each.duration)")
        late = np.quantile(times, 0.99)
        print(f"{len(times)} frames: median {np.median(times):.1f} ms, p99 {late:.1f} ms, worst {max(times):.1f} ms")
        assert len(times) > 30
        assert np.median(times) <= 8
        screen.close()
