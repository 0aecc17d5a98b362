"""How long the graph of a pool takes, and how much memory, beside scikit-learn's exact neighbours.

    python benchmarks/graph_scale.py [--sizes 5000 20000 100000] [--width 384] [--cells [MNIST]]

Vectors of a mixture of 50 Gaussians, as an encoder might give them; 100 labels. Each size runs in a process of its own:
CPU seconds to read the pool and link it (the graph holds at most 50,000 samples), to learn from 100 labels with all
settings compared, and to predict every sample; and the peak memory of the process above what it had before.
scikit-learn: `NearestNeighbors(algorithm="brute")` on the same 32 directions, and on the vectors as they are. Its label
spreading is not run, as it takes n × n memory. `kept` is the time to read the graph from a file in place of building
it, and `grown` the time to add the last hundredth of the pool to it. Prints JSON lines.

--cells: approximate neighbours of every sample, instead of exact ones of a sample of the pool. Each sample looks for
its neighbours in the k-means cells nearest to its own. Shows how many of the nearest 10 it finds (recall), and what
either graph learns; with MNIST, a folder that holds mnist/, also on its 60,000 digits, with a sample of 15,000.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ally.data import Source, blocks
from ally.data.arrays.memory import ArraySource
from ally.graph import NeighbourGraph, sort_points
from ally.learning.graph import LARGEST_GRAPH, GraphLearner
from ally.learning.learner import Examples
from ally.learning.objectives import ERM
from ally.learning.pool_graph import NEIGHBOURS, PoolGraph
from ally.neighbours import ArrayRows, Neighbours, find_nearest
from ally.rng import Streams

PEER = 20_000
"""Above this the peer is not run."""
CELL = 512
"""Samples in a cell, on average."""


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
    found |= measure_file(source)
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


def measure_file(source: Source) -> dict[str, float]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        learner = GraphLearner(keep_in=Path(folder))
        for name, count in (("", len(source) * 99 // 100), ("kept", len(source) * 99 // 100), ("grown", len(source))):
            began = time.process_time()
            learner.prepared(source, np.arange(count)).graphs[0].build()
            found[name] = time.process_time() - began
    del found[""]
    return found


def link_cells(points: np.ndarray, k: int, probes: int) -> Neighbours:
    """The k nearest of those in the `probes` cells nearest to that of each point."""
    n, count = len(points), max(1, len(points) // CELL)
    rng = np.random.default_rng(0)
    sample = points[np.sort(rng.permutation(n)[: 32 * count])]
    means = sample[np.sort(rng.permutation(len(sample))[:count])]
    for _ in range(5):
        cells = find_nearest(ArrayRows(sample), ArrayRows(means)).numbers[:, 0]
        sums = np.zeros(means.shape)
        np.add.at(sums, cells, sample)
        sizes = np.bincount(cells, minlength=count)[:, None]
        means = np.where(sizes > 0, sums / np.maximum(sizes, 1), means).astype(np.float32)
    cells = find_nearest(ArrayRows(points), ArrayRows(means)).numbers[:, 0]
    members = np.split(np.argsort(cells, kind="stable"), np.cumsum(np.bincount(cells, minlength=count))[:-1])
    near = find_nearest(ArrayRows(means), ArrayRows(means), min(probes, count)).numbers
    numbers, squared = np.empty((n, k), np.int32), np.empty((n, k))
    for cell, here in enumerate(members):
        others = np.sort(np.concatenate([members[number] for number in near[cell]]))
        nearest = find_nearest(ArrayRows(points[here]), ArrayRows(points[others]), k, (here, others))
        numbers[here], squared[here] = others[nearest.numbers], nearest.squared
    return Neighbours(numbers, squared)


def compare_cells(source: Source, labels: np.ndarray, most: int, probes: tuple[int, ...]) -> None:
    """The exact graph of a sample, and graphs of all by cells: recall, CPU seconds to link and to learn from 100
    labels, and how many of 4000 samples each predicts right."""
    rows = np.arange(len(source))
    learner = GraphLearner(most).prepared(source, rows)
    space = learner.graphs[0].space
    points = sort_points(np.concatenate([space.read(source, rows[block]) for block in blocks(len(rows))]))
    some = np.sort(np.random.default_rng(5).permutation(len(points))[:1000])
    truth = find_nearest(ArrayRows(points[some]), ArrayRows(points), 10, (some, np.arange(len(points)))).numbers
    for count in (0, *probes):
        began = time.process_time()
        found: dict[str, float] = {"samples": len(source), "cells": count}
        if count:
            graph = NeighbourGraph.of(points, link_cells(points, max(NEIGHBOURS), count))
            found["link"] = time.process_time() - began
            pairs = zip(graph.neighbours.numbers[some, :10], truth, strict=True)
            found["recall"] = float(np.mean([len(np.intersect1d(*pair)) / 10 for pair in pairs]))
            pool = PoolGraph(source, rows, space, len(rows))
            pool._graph = graph
            learner = GraphLearner(len(rows), graphs=(pool,))
        else:
            learner = GraphLearner(most).prepared(source, rows)
            learner.graphs[0].build()
            found["link"] = time.process_time() - began
        test = np.sort(np.random.default_rng(3).permutation(len(source))[:4000])
        began = time.process_time()
        fitted = learner.fit(make_examples(source, labels), ERM(), Streams(0))
        found["learn"] = time.process_time() - began
        found["accuracy"] = float(np.mean(fitted.predict(ArraySource(source.read(test))) == labels[test]))
        print(json.dumps({name: round(value, 3) for name, value in found.items()}), flush=True)


def read_mnist(folder: Path) -> tuple[Source, np.ndarray]:
    images, labels = (
        np.frombuffer(gzip.decompress((folder / "mnist" / name).read_bytes()), np.uint8, offset=offset)
        for name, offset in (("train-images-idx3-ubyte.gz", 16), ("train-labels-idx1-ubyte.gz", 8))
    )
    return ArraySource(images.reshape(-1, 784).astype(np.float32), vectors=True), labels.astype(np.int64)


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
    parser.add_argument("--cells", nargs="?", const="", metavar="MNIST")
    given = parser.parse_args()
    if given.cells is not None:
        for size in given.sizes:
            compare_cells(*draw(size, given.width), LARGEST_GRAPH, (8,))
        if given.cells:
            compare_cells(*read_mnist(Path(given.cells)), 15_000, (8,))
        return
    if given.one:
        print(json.dumps(run(given.one, given.width)), flush=True)
        return
    for size in given.sizes:
        subprocess.run([sys.executable, __file__, "--one", str(size), "--width", str(given.width)], check=True)


if __name__ == "__main__":
    main()
