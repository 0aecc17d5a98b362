"""What a self-supervised loss over the whole pool saves: the error of training on few random labels, by setting of the
objective.

    python benchmarks/unlabelled.py --data-dir DATA [--trial mnist parkinsons] [--seeds 1] [--out
    benchmarks/results/unlabelled.csv]

mnist: MLP 2×256 on images standardised as a whole; random labels from the first 50 000 training images, the rest of
    them unlabelled;
accuracy on the other 10 000. parkinsons: total_UPDRS, standardised features without the subject, the same MLP; mean
squared error of standardised targets on a random 20 %. No validation labels. Finished cells in the output file are not
run again.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ally.experiment import Cell, Trial, simulate
from ally.learning.objectives import ERM, Objective, PDCLUnlabelled, SmoothUnlabelled
from ally.learning.selfsupervised import Smoothness
from ally.learning.training import Training
from ally.strategies import CATALOGUE
from mnist import load_development

DEFAULT = SmoothUnlabelled()
CONSTRAINED = PDCLUnlabelled()
BOTH: dict[str, Objective] = {
    "plain training": ERM(),
    "default": DEFAULT,
    "weight 0.3": replace(DEFAULT, weight=0.3),
    "constraints": CONSTRAINED,
    "noise": replace(DEFAULT, secondary_loss="noise"),
    "mask": replace(DEFAULT, secondary_loss="mask"),
    "reconstruction": replace(DEFAULT, secondary_loss="reconstruction"),
}
CLASSIFICATION: dict[str, Objective] = {
    "always binding": replace(DEFAULT, confidence=0.0),
    "confidence 0.95": replace(DEFAULT, confidence=0.95),
    "no warm-up": replace(DEFAULT, warmup=0.0),
    "warm-up throughout": replace(DEFAULT, warmup=1.0),
    "shares of the labels": replace(DEFAULT, shares="labels"),
    "constraints, always in force": replace(CONSTRAINED, confidence=0.0),
    "constraints, price 1": replace(CONSTRAINED, price=1.0),
    "shift": replace(DEFAULT, secondary_loss="shift"),
    "entropy": replace(DEFAULT, secondary_loss="entropy"),
}
REGRESSION: dict[str, Objective] = {
    "radius 0.6": replace(DEFAULT, secondary_loss=Smoothness(radius=0.6)),
    "radius 1": replace(DEFAULT, secondary_loss=Smoothness(radius=1.0)),
}
TRIALS = {"mnist": ({**BOTH, **CLASSIFICATION}, [100, 200, 400]), "parkinsons": ({**BOTH, **REGRESSION}, [200, 600])}


def load(data_dir: Path, name: str, seed: int) -> Trial:
    if name == "mnist":
        return load_development(data_dir, name)
    table = pd.read_csv(data_dir / "parkinsons" / "parkinsons_updrs.data")
    X = table.drop(columns=["subject#", "motor_UPDRS", "total_UPDRS"]).to_numpy(np.float64)
    y = table["total_UPDRS"].to_numpy(np.float64)
    y = (y - y.mean()) / y.std()
    order = np.random.default_rng(seed).permutation(len(X))
    test, pool = order[: len(X) // 5], order[len(X) // 5 :]
    return Trial(name, "regression", X[pool], y[pool], X[test], y[test])


def run(data_dir: Path, task: tuple[str, str, int, int]) -> dict[str, object]:
    torch.set_num_threads(1)
    name, variant, labels, seed = task
    objective = TRIALS[name][0][variant]
    training = Training(lr=5e-3 if variant == "plain training" else 2e-3, epochs=30, batch_size=64)
    strategy = replace(CATALOGUE["random"], objective=objective)
    cell = Cell("random", seed, init=labels, batch=1, rounds=0, model="mlp", training=training, custom=strategy)
    record = next(simulate(load(data_dir, name, seed), cell))
    value = record.value if name == "mnist" else record.value**2
    return {
        "trial": name,
        "variant": variant,
        "labels": labels,
        "seed": seed,
        "value": value,
        "train_seconds": record.train_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--trial", nargs="*", default=list(TRIALS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "unlabelled.csv")
    arguments = parser.parse_args()

    results = pd.read_csv(arguments.out).to_dict("records") if arguments.out.exists() else []
    done = {(row["trial"], row["variant"], row["labels"], row["seed"]) for row in results}
    tasks = [
        (name, variant, n, seed)
        for name in arguments.trial
        for seed in range(arguments.seeds)
        for n in TRIALS[name][1]
        for variant in TRIALS[name][0]
    ]
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        for row in pool.map(partial(run, arguments.data_dir), [task for task in tasks if task not in done]):
            results.append(row)
            pd.DataFrame(results).to_csv(arguments.out, index=False)
            print(
                f"{row['trial']:10s} {row['variant']:24s} {row['labels']:5d} labels  {row['value']:.4f}  "
                f"{row['train_seconds']:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
