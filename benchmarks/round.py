"""Where the time of one round goes: training, reading the pool, fitting the dual head, scoring, choosing.

    python benchmarks/round.py [--data-dir DATA] [--threads 2]

MNIST from DATA (60 000 images, MLP 2×256, PDCL, 30 epochs, batches of 64) or else scikit-learn's digits; 200 and 1000
random labels, then a batch of 200 by the parts of `ally`; the paper's head beside the default one. Medians of three.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ally.data import as_source, fit_scaler
from ally.execution.memory import Scratch
from ally.experiment.demo import demo_trial
from ally.learning.dual_head import PaperHead, RidgeHead
from ally.learning.head_features import Labelled
from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import PDCL
from ally.learning.snapshot import Snapshot, view
from ally.learning.training import Training
from ally.models import MLP
from ally.rng import Streams
from ally.selection import ClusterTop
from ally.selection.base import Limits
from mnist import load

REPEATS = 3


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    """Median seconds, and the last result."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    data = demo_trial("digits") if arguments.data_dir is None else load(arguments.data_dir, "mnist")
    raw = as_source(data.pool)
    order = np.random.default_rng(0).permutation(len(data.pool))
    source = fit_scaler(raw, np.arange(len(data.pool))).of(raw)
    print(
        "| labels | train | read the pool | fit the head | fit the paper's head | score | choose 200 "
        "|\n|---|---|---|---|---|---|---|"
    )
    for size in (200, 1000):
        known, free = np.sort(order[:size]), np.sort(order[size:])
        learner = Network(MLP, Training(lr=5e-3, epochs=30, batch_size=64))
        examples = Examples(source, known, data.pool_labels[known].astype(float), "classification", tuple(range(10)))
        train, fit = clocked(
            lambda examples=examples, learner=learner: learner.fit(examples, PDCL(eps=0.01), Streams(0))
        )
        with Scratch() as scratch:
            read, candidates = clocked(lambda fit=fit, free=free, scratch=scratch: view(fit, source, free, scratch))
            labelled = view(fit, source, known, scratch)
            seen = Labelled(labelled, torch.from_numpy(examples.labels), fit.duals["labelled"])
            ridge, head = clocked(lambda seen=seen: RidgeHead().fit(seen, Streams(0)))
            paper, _ = clocked(lambda seen=seen: PaperHead().fit(seen, Streams(0)))
            score, scores = clocked(lambda head=head, candidates=candidates: head(candidates))
            snapshot = Snapshot("classification", candidates, labelled, seen.labels, seen.duals)
            select = ClusterTop(shortlist=20)
            choose, _ = clocked(
                lambda scores=scores, snapshot=snapshot, select=select: select(
                    snapshot, scores, 200, Streams(0), Limits()
                )
            )
        print(
            f"| {size} | "
            + " | ".join(f"{seconds:.3f} s" for seconds in (train, read, ridge, paper, score, choose))
            + " |"
        )


if __name__ == "__main__":
    main()
