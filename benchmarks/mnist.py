"""Mean test accuracy of every catalogue entry on MNIST over 400 … 1600 labels.

    python benchmarks/mnist.py --data-dir DATA [--seeds 3] [--strategy NAME ...] [--out benchmarks/results/mnist.csv]

Protocol: MLP 2×256 on images standardised as a whole, Adam at .005 (× .97 per epoch), batches of 64, 30 epochs, no validation
labels, no early stopping; 200 random labels, then 7 batches of 200 from the 60 000 training images; the same starting sets and
initial weights for all strategies; accuracy on the 10 000 test images. BAIT asks about 10 000 images drawn at random, because
its cost grows with the pool; every other strategy about all. Strategies already in the output file are not run again.
"""

from __future__ import annotations

import argparse
import gzip
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from ally.experiment import COLUMNS, Cell, Trial, run_cells
from ally.learning.training import Training
from ally.strategies import CATALOGUE

PROTOTYPE = {"random": 0.888, "ally-paper": 0.896, "badge": 0.922, "margin": 0.924}
FILES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


@lru_cache(maxsize=1)
def load(data_dir: Path, name: str) -> Trial:
    images, labels, test_images, test_labels = (
        np.frombuffer(
            gzip.decompress((data_dir / "mnist" / f"{file}-ubyte.gz").read_bytes()), np.uint8, offset=16 if "images" in file else 8
        )
        for file in FILES
    )
    return Trial(name, "classification", images.reshape(-1, 1, 28, 28), labels, test_images.reshape(-1, 1, 28, 28), test_labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strategy", nargs="*", default=list(CATALOGUE))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "mnist.csv")
    arguments = parser.parse_args()

    training = Training(lr=5e-3, epochs=30, batch_size=64)
    results = pd.read_csv(arguments.out, keep_default_na=False) if arguments.out.exists() else pd.DataFrame(columns=COLUMNS)
    for strategy in arguments.strategy:
        done = set(results[results["strategy"] == strategy]["seed"])
        small = {"candidates": 10_000, "setting": "10000 candidates"} if strategy == "bait" else {}
        cells = [
            ("mnist", Cell(strategy, seed, init=200, batch=200, rounds=7, model="mlp", training=training, **small))
            for seed in range(arguments.seeds)
            if seed not in done
        ]
        if cells:
            fresh = run_cells(partial(load, arguments.data_dir), cells, arguments.workers)
            results = pd.concat([results, fresh], ignore_index=True) if len(results) else fresh
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            results.to_csv(arguments.out, index=False)
        curve = results[(results["strategy"] == strategy) & (results["labels"] >= 400)].groupby("seed")["value"].mean()
        seconds = results[(results["strategy"] == strategy) & (results["round"] < 7)]["query_seconds"].median()
        prototype = f"prototype {PROTOTYPE[strategy]:.3f}" if strategy in PROTOTYPE else ""
        print(
            f"{strategy:12s} {curve.mean():.4f} ± {curve.std():.4f}  ({len(curve)} seeds)  {seconds:6.2f} s / query  {prototype}",
            flush=True,
        )


if __name__ == "__main__":
    main()
