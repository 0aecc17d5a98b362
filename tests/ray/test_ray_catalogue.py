"""Every strategy on a Ray cluster of two nodes, a node and actors that are lost, a client: `make test-ray`."""

import os

import numpy as np
import pytest
from clusters import MEMORY, end_two_nodes, running_head, start_two_nodes
from leftovers import Session

from ally.errors import EngineError
from ally.execution import ray as on_ray
from ally.execution.ray import RayEngine
from ally.loop import Loop
from ally.strategies import CATALOGUE
from ally.testing.engine import TrainedOnce, check_ids

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module")
def two_nodes():
    """A cluster of two nodes with one CPU each, both on this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    on_ray.release()
    ray.shutdown()
    cluster = start_two_nodes()
    yield cluster
    end_two_nodes(cluster)


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("name", list(CATALOGUE))
def test_every_strategy_gives_the_same_ids_on_two_nodes(two_nodes, name, shards):
    check_ids(RayEngine(workers=2, shards=shards), name)


def test_a_node_is_lost_in_the_middle(two_nodes):
    node = two_nodes.add_node(num_cpus=1, object_store_memory=MEMORY)
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


CLIENT = """
import sys
from ally.testing.engine import check_ids
check_ids(sys.argv[1], "coreset")
check_ids(sys.argv[1], "margin")
"""


def test_a_client_of_a_cluster_elsewhere_gets_the_same_ids(tmp_path):
    """``ray://``: the driver is no part of the cluster."""
    session = Session(tmp_path)
    with running_head(session) as head:
        client = session.start("-c", CLIENT, head.door, RAY_AUTH_MODE="disabled")
        client.communicate(timeout=300)
        session.look()
    assert client.returncode == 0
    assert session.left() == ([], set())


def test_a_pool_in_memory_may_be_larger_than_the_object_store(cluster):
    """What does not fit goes to disk."""
    rows = 1_300_000
    X = np.random.default_rng(0).normal(size=(rows, 64)).astype(np.float32)
    assert X.nbytes > on_ray.STORE
    y = np.where(np.arange(rows) < 50, np.arange(rows) % 2, -1)
    settings = {"strategy": "margin", "model": TrainedOnce(), "missing_label": -1, "random_state": 0}
    here, there = (Loop(X, y, engine=engine, **settings).ask(5) for engine in ("local", RayEngine(workers=2)))
    assert here.ids.tolist() == there.ids.tolist()
