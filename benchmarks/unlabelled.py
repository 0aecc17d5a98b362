"""What self-supervised constraints over the whole pool save: accuracy on MNIST with few random labels.

    python benchmarks/unlabelled.py --data-dir DATA [--labels 100 200 400 1000] [--seeds 1] [--out benchmarks/results/unlabelled.csv]

MLP 2×256 on images standardised as a whole; random labels from the first 50 000 training images, the rest of them unlabelled,
accuracy on the other 10 000; no validation labels. Finished cells in the output file are not run again.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import torch

from ally.experiment import Cell, Trial, simulate
from ally.learning.objectives import ERM, PDCLUnlabelled
from ally.learning.training import Training
from ally.strategies import CATALOGUE
from mnist import load as load_mnist

HELD = PDCLUnlabelled(steps=2500)
VARIANTS = {
    "plain training": (ERM(), Training(lr=5e-3, epochs=30, batch_size=64)),
    "smoothness, multipliers held at 1": (HELD, Training(lr=2e-3, epochs=30, batch_size=64)),
    "smoothness, multipliers moved, cap 3": (
        replace(HELD, weights="moved", eps=0.02, dual_cap=3.0),
        Training(lr=2e-3, epochs=30, batch_size=64),
    ),
}


def run(data_dir: Path, task: tuple[str, int, int]) -> dict[str, object]:
    torch.set_num_threads(1)
    variant, labels, seed = task
    whole = load_mnist(data_dir, "mnist")
    trial = Trial("mnist-dev", whole.task, whole.pool[:50_000], whole.pool_labels[:50_000], whole.pool[50_000:], whole.pool_labels[50_000:])
    objective, training = VARIANTS[variant]
    strategy = replace(CATALOGUE["random"], objective=objective)
    record = next(simulate(trial, Cell("random", seed, init=labels, batch=1, rounds=0, model="mlp", training=training, custom=strategy)))
    return {"variant": variant, "labels": labels, "seed": seed, "accuracy": record.value, "train_seconds": record.train_seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--labels", type=int, nargs="*", default=[400, 1000, 200, 100])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "unlabelled.csv")
    arguments = parser.parse_args()

    results = pd.read_csv(arguments.out).to_dict("records") if arguments.out.exists() else []
    done = {(row["variant"], row["labels"], row["seed"]) for row in results}
    tasks = [(variant, n, seed) for seed in range(arguments.seeds) for n in arguments.labels for variant in VARIANTS]
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        for row in pool.map(partial(run, arguments.data_dir), [task for task in tasks if task not in done]):
            results.append(row)
            pd.DataFrame(results).to_csv(arguments.out, index=False)
            print(
                f"{row['variant']:40s} {row['labels']:5d} labels  accuracy {row['accuracy']:.4f}  {row['train_seconds']:.0f} s", flush=True
            )


if __name__ == "__main__":
    main()
