"""Actors and drivers that are killed or interrupted, while they query or run a grid: nothing is left behind."""

import json
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from clusters import running_head
from leftovers import Session

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.xdist_group("ray")]
KILLS = 50
LONGEST = 900.0
"""Seconds after which a program is taken to hang."""
SOON, LATER = 20.0, 120.0
"""Seconds that work may go on without its driver, and that anything may be left. Two agents of Ray itself look for the
rest of a killed cluster for a minute; they hold no shared memory and do nothing else."""


def lines(process):
    """What a program prints, until it ends; it is killed if that takes too long. It can go on printing after the last
    line that is wanted."""
    watch = threading.Timer(LONGEST, process.kill)
    watch.start()
    try:
        for line in process.stdout:  # noqa: UP028, `yield from` would close it
            yield line
    finally:
        watch.cancel()


def test_actors_are_killed_at_random_fifty_times(tmp_path):
    """The ids are the same; no actor, object, process or shared memory is left."""
    session, seen = Session(tmp_path), 0
    with session.start(str(Path(__file__).with_name("killing.py")), str(KILLS)) as program:
        for line in lines(program):
            seen, last = session.look(), line
    assert program.returncode == 0
    assert seen >= 2, "each node has a store"
    assert last == "ended\n"
    assert session.left() == ([], set())


GRID = {"seeds": 2, "init": 20, "batch": 10, "models": "linear"}
QUERY_SCRIPT = """
from ally.execution.ray import RayEngine
from ally.loop import Loop
from ally.testing.engine import TrainedOnce
from ally.testing.pools import blobs
scene = blobs("classification", 200_000, 30, features=6)
while True:
    Loop(scene.X, scene.y, strategy="coreset", model=TrainedOnce(), random_state=0,
         engine=RayEngine(workers=2, shards=5), progress=lambda *step: print(*step, flush=True)).ask(200)
"""
GRID_SCRIPT = """
import json, sys
from ally.experiment import bench
bench("digits", ["margin", "random"], out=sys.argv[1], engine="ray", **json.loads(sys.argv[2]))
"""


def asking(session, out, **environment):
    """A driver in the middle of a query."""
    driver = session.start("-c", QUERY_SCRIPT, **environment)
    assert any(line.startswith("embed") for line in lines(driver))
    return driver


def running_a_grid(session, out, rounds=40, **environment):
    """A driver in the middle of a grid."""
    driver = session.start("-c", GRID_SCRIPT, str(out), json.dumps(GRID | {"rounds": rounds}), **environment)
    deadline = time.monotonic() + LONGEST
    while not any(len(path.read_text().splitlines()) > 2 for path in out.glob("cells/*.jsonl")):
        assert driver.poll() is None, "the grid ended before it could be ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return driver


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A cluster that goes on when a driver ends, and its processes."""
    session = Session(tmp_path_factory.mktemp("cluster"))
    with running_head(session) as head:
        yield head, session
        session.look()
    assert session.left() == ([], set())


def gone(session, title):
    """Whether no process with this title is left soon."""
    deadline = time.monotonic() + SOON
    while session.processes(title) and time.monotonic() < deadline:
        time.sleep(0.2)
    return not session.processes(title)


HOW = pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
WORK = pytest.mark.parametrize(
    ("work", "title"), [(asking, "ray::Host"), (running_a_grid, "ray::_task")], ids=["query", "grid"]
)


@HOW
@WORK
def test_nothing_is_left_of_a_driver_and_its_own_cluster(work, title, how, tmp_path):
    session = Session(tmp_path)
    driver = work(session, tmp_path / "out")
    assert session.look() > 0
    assert session.processes(title)
    driver.send_signal(how)
    driver.wait(60)
    assert gone(session, title)
    assert session.left(LATER) == ([], set())


@HOW
@WORK
def test_a_cluster_elsewhere_is_free_again_when_a_driver_ends(work, title, how, tmp_path, elsewhere):
    head, cluster = elsewhere
    session = Session(tmp_path)
    driver = work(session, tmp_path / "out", RAY_ADDRESS=head.address, RAY_AUTH_MODE="disabled")
    assert cluster.processes(title)
    driver.send_signal(how)
    driver.wait(60)
    assert gone(cluster, title)
    assert session.left()[0] == []
    assert cluster.processes("raylet")


def test_a_grid_goes_on_after_its_driver_was_killed(tmp_path):
    """It has the numbers of a grid that ran here, in one go."""
    from ally.experiment import bench

    out = tmp_path / "there"
    driver = running_a_grid(Session(tmp_path), out, rounds=3)
    driver.kill()
    driver.wait()
    more = GRID | {"rounds": 3}
    there = bench("digits", ["margin", "random"], out=out, engine="ray", **more)
    here = bench("digits", ["margin", "random"], out=tmp_path / "here", workers=2, **more)
    for column in ("strategy", "seed", "labels", "value"):
        np.testing.assert_array_equal(here[column], there[column])
