"""A program that asks on two nodes of this machine while its actors are killed at random, and then looks for what is
left of them: python killing.py KILLS."""

import gc
import sys
import time
from pathlib import Path

import torch
from clusters import MEMORY, end_two_nodes, start_two_nodes
from leftovers import Session
from lossy_engine import Killer, MortalEngine

import ray
from ally.execution import ray as on_ray
from ally.testing.engine import check_ids

NAMES = ["ally", "badge", "coreset", "margin", "bait", "lcmd", "maxherding", "dropquery"]
FREE = {"CPU": 2.0, "object_store_memory": 2.0 * MEMORY}
"""All that the two nodes have."""


def main(kills: int) -> None:
    torch.set_num_threads(1)
    session, cluster = Session(Path.cwd()), start_two_nodes()
    killed = seed = 0
    while killed < kills:
        killer = Killer(chance=0.15, seed=seed, most=kills - killed)
        check_ids(MortalEngine(workers=2, shards=5, killer=killer), NAMES[seed % len(NAMES)], n=8)
        killed, seed = killed + len(killer.killed), seed + 1
        print(f"{killed} killed", flush=True)
    assert len(session.processes("ray::Host")) == 2, "the last two actors are idle, and no other is there"
    on_ray.release()
    gc.collect()
    deadline = time.monotonic() + 60
    while ((actors := session.processes("ray::Host")) or free() != FREE) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert actors == []
    assert free() == FREE
    end_two_nodes(cluster)
    print("ended", flush=True)


def free() -> dict[str, float]:
    """CPUs and object stores."""
    found = ray.available_resources()
    return {name: found.get(name, 0.0) for name in FREE}


if __name__ == "__main__":
    main(int(sys.argv[1]))
