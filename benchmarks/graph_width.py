"""How wide the links of the pool's graph should be: the error of `model="graph"` for several widths.

    python benchmarks/graph_width.py [--data-dir DATA] [--sets digits ...] [--shares 1 0.5 0.25] [--seeds 6]

A width is a share of the median squared distance to a neighbour (`GraphSettings.share`). Each set is divided at random
into a pool (60 %) and a test set; 20, 60 and 200 labels are drawn at random. Prints the share of wrong labels and the
CPU seconds of a fit. MNIST and wine quality are read from DATA; without it they are left out.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits

from ally.data.arrays.memory import ArraySource
from ally.learning.graph import GraphLearner
from ally.learning.graph_settings import GraphSettings
from ally.learning.learner import Examples
from ally.learning.objectives import ERM
from ally.rng import Streams

Samples = tuple[np.ndarray, np.ndarray]
SIZES = (20, 60, 200)
VECTORS = ("mnist", "vectors")
"""Sets of one scale, as an encoder's vectors are."""


def mnist(folder: Path) -> Samples:
    images, labels = (
        np.frombuffer(gzip.decompress((folder / "mnist" / name).read_bytes()), np.uint8, offset=offset)
        for name, offset in (("train-images-idx3-ubyte.gz", 16), ("train-labels-idx1-ubyte.gz", 8))
    )
    return images.reshape(-1, 784)[:6000], labels[:6000].astype(int)


def vectors(folder: Path) -> Samples:
    """Forty groups of 5000 samples, each in twelve directions of its own, and eight classes of five groups."""
    rng = np.random.default_rng(0)
    means, directions = rng.standard_normal((40, 384)), rng.standard_normal((40, 12, 384))
    group = rng.integers(40, size=5000)
    inside = np.einsum("nr,nrd->nd", rng.standard_normal((5000, 12)), directions[group])
    return 0.6 * means[group] + 0.7 * inside + 0.7 * rng.standard_normal((5000, 384)), group % 8


def wine(folder: Path) -> Samples:
    table = pd.read_csv(folder / "uci" / "wine-quality-red.csv.gz")
    return table.iloc[:, :-1].to_numpy(), np.clip(table["target"].to_numpy(int) - 4, 0, 3)


SETS: dict[str, Callable[[Path], Samples]] = {
    "digits": lambda folder: load_digits(return_X_y=True),
    "mnist": mnist,
    "vectors": vectors,
    "wine": wine,
    "cancer": lambda folder: load_breast_cancer(return_X_y=True),
}


def measure(name: str, samples: Samples, share: float, count: int, seed: int) -> tuple[float, float]:
    X, y = samples[0].astype(np.float32), samples[1]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    pool, test = np.split(order, [int(0.6 * len(X))])
    source = ArraySource(X[pool], vectors=name in VECTORS)
    learner = GraphLearner().prepared(source, np.arange(len(pool)))
    for graph in learner.graphs:
        graph.build()
    rows = np.sort(rng.permutation(len(pool))[:count])
    classes = tuple(range(int(y.max()) + 1))
    GraphSettings.usual = lambda classes: GraphSettings(balanced=classes, share=share)  # type: ignore[method-assign]
    began = time.process_time()
    fitted = learner.fit(Examples(source, rows, y[pool][rows], "classification", classes), ERM(), Streams(seed))
    seconds = time.process_time() - began
    return float(np.mean(fitted.predict(ArraySource(X[test])) != y[test])), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--shares", nargs="*", type=float, default=[1.0, 0.5, 0.25])
    parser.add_argument("--seeds", type=int, default=6)
    given = parser.parse_args()
    for name in given.sets:
        if given.data_dir is None and name in ("mnist", "wine"):
            continue
        samples = SETS[name](given.data_dir)
        for share in given.shares:
            for count in SIZES:
                found = np.asarray([measure(name, samples, share, count, seed) for seed in range(given.seeds)])
                error, seconds = found.mean(axis=0)
                print(f"{name:8s} {share:5.2f} {count:4d} labels: {error:.4f} wrong, {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
