"""Every strategy on a Ray cluster of two nodes, and clusters, actors and drivers that are lost: `make test-ray`."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from lossy_engine import Killer, MortalEngine

from ally.errors import EngineError
from ally.execution import ray as on_ray
from ally.execution.ray import RayEngine
from ally.loop import Loop
from ally.strategies import CATALOGUE
from ally.testing.engine import TrainedOnce, check_ids

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.xdist_group("ray")]
KILLS = 50


@pytest.fixture(scope="module")
def two_nodes():
    """A cluster of two nodes with one CPU each, both on this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    from ray.cluster_utils import Cluster

    on_ray.release()
    ray.shutdown()
    os.environ.setdefault("RAY_worker_niceness", "0")
    node = {"num_cpus": 1, "object_store_memory": 2 * 10**8, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(num_cpus=1, object_store_memory=2 * 10**8)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    on_ray.release()
    ray.shutdown()
    cluster.shutdown()
    os.environ.pop("RAY_ADDRESS", None)


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("name", list(CATALOGUE))
def test_every_strategy_gives_the_same_ids_on_two_nodes(two_nodes, name, shards):
    check_ids(RayEngine(workers=2, shards=shards), name)


def test_actors_are_killed_at_random_fifty_times(two_nodes):
    killed, seed = 0, 0
    names = ["ally", "badge", "coreset", "margin", "bait", "lcmd", "maxherding", "dropquery"]
    while killed < KILLS:
        killer = Killer(chance=0.15, seed=seed, most=KILLS - killed)
        check_ids(MortalEngine(workers=2, shards=5, killer=killer), names[seed % len(names)], n=8)
        killed, seed = killed + len(killer.killed), seed + 1
    assert killed == KILLS


def test_a_node_is_lost_in_the_middle(two_nodes):
    node = two_nodes.add_node(num_cpus=1, object_store_memory=2 * 10**8)
    two_nodes.wait_for_nodes()
    on_ray.release()
    lost = []

    def lose(stage, done, total):
        if stage == "embed" and done > total / 2 and not lost:
            lost.append(done)
            two_nodes.remove_node(node, allow_graceful=False)

    check_ids(RayEngine(workers=3, shards=5), "badge", n=8, progress=lose)
    assert lost


def test_an_actor_that_is_lost_again_and_again_is_an_error(two_nodes, monkeypatch):
    class Deadly:
        def __init__(self, part):
            pass

        def end(self):
            os._exit(1)

    monkeypatch.setattr("ally.execution.ray.LOSSES", 2)
    with (
        RayEngine(workers=2).crew(range(2), Deadly) as crew,
        pytest.raises(EngineError, match="lost 2 times in one call"),
    ):
        crew.each("end")


SCRIPT = """
import numpy as np
from ally.execution.ray import RayEngine
from ally.loop import Loop
from ally.testing.engine import TrainedOnce
from ally.testing.pools import blobs
scene = blobs("classification", 200_000, 30, features=6)
print("started", flush=True)
while True:
    Loop(scene.X, scene.y, strategy="coreset", model=TrainedOnce(), random_state=0,
         engine=RayEngine(workers=2, shards=5), progress=lambda *step: print(*step, flush=True)).ask(200)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_nothing_is_left_of_a_driver_that_ends(how, tmp_path):
    environment = {**os.environ, "ALLY_TEST_DRIVER": str(tmp_path)}
    environment.pop("RAY_ADDRESS", None)
    driver = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    assert driver.stdout is not None
    for line in driver.stdout:
        if line.startswith("embed"):
            break
    mark = f"ALLY_TEST_DRIVER={tmp_path}".encode()
    assert len(_processes(mark)) > 3
    driver.send_signal(how)
    driver.wait(60)
    deadline = time.monotonic() + 60
    while _processes(mark) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _processes(mark) == []


def _processes(mark: bytes) -> list[int]:
    """Processes whose environment holds this."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if mark in (entry / "environ").read_bytes() and "Z" not in (entry / "stat").read_text().split()[2]:
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


CLIENT = """
import sys
from ally.testing.engine import check_ids
check_ids(sys.argv[1], "coreset")
check_ids(sys.argv[1], "margin")
"""


def test_a_client_of_a_cluster_elsewhere_gets_the_same_ids():
    """``ray://``: the driver is no part of the cluster."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("", 0))
        other.bind(("", 0))
        port, door = one.getsockname()[1], other.getsockname()[1]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2"]
    command += [f"--port={port}", f"--ray-client-server-port={door}", "--node-ip-address=127.0.0.1"]
    command += ["--include-dashboard=false", "--disable-usage-stats", "--object-store-memory=200000000"]
    head = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client = [sys.executable, "-c", CLIENT, f"ray://127.0.0.1:{door}"]
        subprocess.run(client, env=environment, check=True, timeout=300)
    finally:
        head.terminate()
        head.wait(60)


GRID = {"seeds": 2, "init": 20, "batch": 10, "rounds": 3, "models": "linear"}
GRID_SCRIPT = """
import json, sys
from ally.experiment import bench
bench("digits", ["margin", "random"], out=sys.argv[1], engine="ray", **json.loads(sys.argv[2]))
"""


def test_a_grid_goes_on_after_its_driver_was_killed(tmp_path):
    """It has the numbers of a grid that ran here, in one go."""
    from ally.experiment import bench

    out = tmp_path / "there"
    driver = subprocess.Popen([sys.executable, "-c", GRID_SCRIPT, str(out), json.dumps(GRID)])
    deadline = time.monotonic() + 300
    while not any(len(path.read_text().splitlines()) > 2 for path in out.glob("cells/*.jsonl")):
        assert driver.poll() is None, "the grid ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    there = bench("digits", ["margin", "random"], out=out, engine="ray", **GRID)
    here = bench("digits", ["margin", "random"], out=tmp_path / "here", workers=2, **GRID)
    for column in ("strategy", "seed", "labels", "value"):
        np.testing.assert_array_equal(here[column], there[column])


def test_a_pool_in_memory_may_be_larger_than_the_object_store(cluster):
    """What does not fit goes to disk."""
    rows = 1_300_000
    X = np.random.default_rng(0).normal(size=(rows, 64)).astype(np.float32)
    assert X.nbytes > on_ray.STORE
    y = np.where(np.arange(rows) < 50, np.arange(rows) % 2, -1)
    settings = {"strategy": "margin", "model": TrainedOnce(), "missing_label": -1, "random_state": 0}
    here, there = (Loop(X, y, engine=engine, **settings).ask(5) for engine in ("local", RayEngine(workers=2)))
    assert here.ids.tolist() == there.ids.tolist()
