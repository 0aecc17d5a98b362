"""Who holds the CPUs and the memory of a cluster: actors let go of them, and a cluster that has none left says so."""

import os
import threading
import time
from functools import partial

import pytest
from leftovers import Session

import ally
from ally.errors import EngineError
from ally.execution import ray as on_ray
from ally.execution.ray import RayEngine
from ally.testing.engine import Counter, TrainedOnce, check_ids
from ally.testing.pools import blobs

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.xdist_group("ray")]


def running(processes):
    return [process for process in processes if os.path.exists(f"/proc/{process}")]


def test_actors_without_a_crew_end_and_others_get_their_cpus(cluster, monkeypatch):
    monkeypatch.setattr(on_ray, "IDLE", 1.0)
    on_ray.release()
    engine = RayEngine(workers=2)
    with engine.crew(range(2), partial(Counter, 0)) as crew:
        actors = cluster.get([actor.ready.remote() for actor in crew._hosts.actors])
        time.sleep(2 * on_ray.IDLE)
        assert crew.each("add", 1) == [1, 1]
        assert len(running(actors)) == 2, "a crew that rests keeps its actors"
    both = cluster.remote(num_cpus=2)(lambda: os.getpid()).remote()
    assert cluster.get(both, timeout=60) not in actors
    assert running(actors) == []
    check_ids(engine, "coreset")


def test_crews_one_after_the_other_share_their_actors(cluster):
    def actors():
        with RayEngine(workers=2).crew(range(2), partial(Counter, 0)) as crew:
            return cluster.get([actor.ready.remote() for actor in crew._hosts.actors])

    assert actors() == actors()


def test_another_number_of_actors_waits_for_a_crew_to_end(cluster):
    """They do not take the actors of a crew at work."""
    found, two = [], RayEngine(workers=2)

    def ask_for_one():
        with RayEngine(workers=1).crew(range(3), partial(Counter, 5)) as crew:
            found.extend(crew.each("add", 1))

    other = threading.Thread(target=ask_for_one)
    with two.crew(range(2), partial(Counter, 0)) as crew:
        actors = cluster.get([actor.ready.remote() for actor in crew._hosts.actors])
        other.start()
        other.join(3)
        assert not found
        assert cluster.get([actor.ready.remote() for actor in crew._hosts.actors]) == actors
    other.join(120)
    assert found == [6, 6, 6]


def test_a_grid_may_follow_a_query(cluster, tmp_path):
    check_ids(RayEngine(workers=2), "margin")
    settings = {"seeds": 1, "init": 20, "batch": 10, "rounds": 1, "models": "linear"}
    assert len(ally.bench("digits", ["random"], out=tmp_path, engine="ray", **settings)) == 2


def test_a_cluster_whose_cpus_are_all_taken_says_so(cluster, tmp_path, monkeypatch):
    class Other:
        def ready(self):
            return True

    data = pytest.importorskip("ray.data")
    scene = blobs("classification", 2000, 30, features=6)
    on_ray.release()
    lazy = data.from_numpy(scene.X).map_batches(lambda rows: rows)
    other = cluster.remote(num_cpus=2)(Other).remote()
    assert cluster.get(other.ready.remote(), timeout=60)
    monkeypatch.setattr(on_ray, "PATIENCE", 3.0)
    asked = partial(ally.query, y=scene.y, n=2, strategy="margin", model=TrainedOnce(), random_state=0)
    with pytest.raises(EngineError, match="no room for 2 actors of 1 CPUs within 3 seconds"):
        asked(scene.X, engine="ray")
    with pytest.raises(EngineError, match="no CPU free for the blocks of the Ray Dataset within 3 seconds"):
        asked(lazy)
    with pytest.raises(EngineError, match="no CPU free for the campaigns within 3 seconds"):
        ally.bench("digits", ["random"], out=tmp_path, engine="ray", seeds=1, init=20, batch=10, rounds=1)
    monkeypatch.undo()
    cluster.kill(other)
    here = asked(scene.X).ids.tolist()
    assert asked(scene.X, engine="ray").ids.tolist() == here
    assert asked(lazy, engine="ray").ids.tolist() == here


FULL = """
import numpy as np
from ally.errors import EngineError
from ally.execution import ray as on_ray
from ally.loop import Loop
on_ray.STORE = 80 * 2**20
X = np.random.default_rng(0).normal(size=(2**19, 64)).astype(np.float32)
y = np.where(np.arange(len(X)) < 50, np.arange(len(X)) % 2, -1)
try:
    Loop(X, y, strategy="margin", model="linear", missing_label=-1, engine="ray").ask(2)
except EngineError as error:
    print(f"EngineError: {error}", flush=True)
"""


def test_a_full_object_store_and_a_full_disk_are_said(tmp_path):
    """Ray takes the disk to be full at a share of it that any disk has reached."""
    session = Session(tmp_path)
    driver = session.start("-c", FULL, RAY_local_fs_capacity_threshold="0.0001")
    assert "EngineError: Ray's object store is full, and so is the disk" in driver.communicate(timeout=300)[0]
    assert session.left() == ([], set())
