"""A program that asks on two nodes of this machine while its actors are killed at random: python killing.py KILLS."""

import gc
import sys

from clusters import end_two_nodes, start_two_nodes
from leftovers import MARK, Session
from lossy_engine import Killer, MortalEngine

from ally.execution import ray as on_ray
from ally.testing.engine import check_ids

NAMES = ["ally", "badge", "coreset", "margin", "bait", "lcmd", "maxherding", "dropquery"]


def main(kills: int) -> None:
    import os

    import torch

    import ray

    torch.set_num_threads(1)
    session, cluster = Session(os.environ[MARK]), start_two_nodes()
    killed = seed = 0
    while killed < kills:
        killer = Killer(chance=0.15, seed=seed, most=kills - killed)
        check_ids(MortalEngine(workers=2, shards=5, killer=killer), NAMES[seed % len(NAMES)], n=8)
        killed, seed = killed + len(killer.killed), seed + 1
        print(f"{killed} killed", flush=True)
    assert len(session.processes("ray::Host")) <= 2, "killed actors still run"
    on_ray.release()
    gc.collect()
    del killer
    print("released", sorted(ray.available_resources().items()), flush=True)
    end_two_nodes(cluster)


if __name__ == "__main__":
    main(int(sys.argv[1]))
