"""Ray clusters on this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from leftovers import Session

from ally.execution import ray as on_ray

MEMORY = 2 * 10**8
"""Bytes of a node's object store."""


def start_two_nodes() -> Any:
    """A cluster of two nodes with one CPU each; this process is its driver."""
    from ray.cluster_utils import Cluster

    import ray

    os.environ.setdefault("RAY_worker_niceness", "0")
    node = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    return cluster


def end_two_nodes(cluster: Any) -> None:
    import ray

    on_ray.release()
    ray.shutdown()
    cluster.shutdown()
    os.environ.pop("RAY_ADDRESS", None)


class Head(NamedTuple):
    """Where a cluster can be reached: by drivers that belong to it, and by clients (``ray://``)."""

    address: str
    door: str


@contextmanager
def running_head(session: Session) -> Iterator[Head]:
    """A cluster of two CPUs that is nobody's own, from ``ray start``."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("", 0))
        other.bind(("", 0))
        port, door = one.getsockname()[1], other.getsockname()[1]
    command = ["-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2"]
    command += [f"--port={port}", f"--ray-client-server-port={door}", "--node-ip-address=127.0.0.1"]
    command += ["--include-dashboard=false", "--disable-usage-stats", f"--object-store-memory={MEMORY}"]
    head = session.start(*command, RAY_AUTH_MODE="disabled", RAY_worker_niceness="0")
    try:
        yield Head(f"127.0.0.1:{port}", f"ray://127.0.0.1:{door}")
    finally:
        head.terminate()
        head.communicate(timeout=60)
