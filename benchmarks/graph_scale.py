"""How long the graph of a pool takes, and how much memory, beside scikit-learn's exact neighbours and label spreading.

    python benchmarks/graph_scale.py [--sizes 5000 20000 100000] [--width 384]

Vectors of a mixture of 50 Gaussians, as an encoder might give them; 100 labels. Each size runs in a process of its own:
CPU seconds to read the pool and link it (the graph holds at most 50,000 samples), to learn from 100 labels with all
settings compared, and to predict every sample; and the peak memory of the process above what it had before.
scikit-learn: `NearestNeighbors(algorithm="brute")` on the same 32 directions, and on the vectors as they are. Its label
spreading is not run, as it takes n × n memory. Prints JSON lines.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ally.data import Source
from ally.data.arrays.memory import ArraySource
from ally.learning.graph import GraphLearner
from ally.learning.learner import Examples
from ally.learning.objectives import ERM
from ally.rng import Streams

PEER = 20_000
"""Above this the peer is not run."""


def draw(n: int, width: int) -> tuple[Source, np.ndarray]:
    rng = np.random.default_rng(0)
    means = rng.standard_normal((50, width)).astype(np.float32)
    which = rng.integers(50, size=n)
    X = means[which]
    X += rng.standard_normal((n, width), dtype=np.float32) * 2
    return ArraySource(X, vectors=True), which % 10


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def run(n: int, width: int) -> dict[str, float]:
    warm_source, warm_labels = draw(300, width)
    fit(warm_source, warm_labels)
    source, labels = draw(n, width)
    before = peak()
    found: dict[str, float] = {"samples": n, "width": width}
    began = time.process_time()
    learner = GraphLearner().prepared(source, np.arange(n))
    graph = learner.graphs[0].build()
    found["link"] = time.process_time() - began
    began = time.process_time()
    fitted = learner.fit(make_examples(source, labels), ERM(), Streams(0))
    found["learn"] = time.process_time() - began
    began = time.process_time()
    right = np.mean(fitted.predict(source) == labels)
    found["predict"] = time.process_time() - began
    found |= {"accuracy": float(right), "in_graph": len(graph), "mebibytes": peak() - before}
    if n <= PEER:
        points = learner.graphs[0].space.read(source, np.arange(n))
        for name, rows in (("peer_32", points), ("peer_whole", source.read(np.arange(n)))):
            began = time.process_time()
            NearestNeighbors(n_neighbors=21, algorithm="brute").fit(rows).kneighbors(rows)
            found[name] = time.process_time() - began
    return {name: round(value, 3) for name, value in found.items()}


def make_examples(source: Source, labels: np.ndarray) -> Examples:
    rows = np.sort(np.random.default_rng(1).permutation(len(labels))[:100])
    return Examples(source, rows, labels[rows], "classification", tuple(range(10)))


def fit(source: Source, labels: np.ndarray) -> None:
    GraphLearner().prepared(source, np.arange(len(source))).fit(make_examples(source, labels), ERM(), Streams(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[5000, 20_000, 100_000])
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--one", type=int)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run(given.one, given.width)), flush=True)
        return
    for size in given.sizes:
        subprocess.run([sys.executable, __file__, "--one", str(size), "--width", str(given.width)], check=True)


if __name__ == "__main__":
    main()
