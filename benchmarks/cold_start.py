"""The first batch, with no label at all: which selection on the inputs gives the best first model?

    python benchmarks/cold_start.py [--data-dir DATA] [--seeds 5] [--out benchmarks/results/cold_start.csv]

Pools: scikit-learn's digits (1197 samples); with DATA also 10 000 MNIST images and Parkinsons (total_UPDRS,
    standardised). Each
selection picks n of the pool from standardised inputs; an MLP is trained plainly on their labels and measured on
held-out samples (accuracy; mean squared error for Parkinsons).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ally import ConstrainedClassifier, ConstrainedRegressor
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection import ClusterCentre, Herding, KCenter, KMeansPP, ProbCover, Select, Top, TypiClust
from ally.selection.base import Limits
from mnist import load_development
from unlabelled import load as load_trial

SELECTIONS: dict[str, Select] = {
    "random": Top(),
    "k-means++": KMeansPP(),
    "k-center": KCenter(),
    "cluster centres": ClusterCentre(),
    "typiclust": TypiClust(),
    "probcover": ProbCover(),
    "herding": Herding(),
}


def load(name: str, data_dir: Path | None, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        pool, test, labels, truth = train_test_split(X, y, test_size=600, random_state=0)
        return pool, labels, test, truth
    assert data_dir is not None
    if name == "mnist":
        trial = load_development(data_dir, name)
        some = np.random.default_rng(seed).permutation(len(trial.pool))[:10_000]
        return (
            trial.pool[some].reshape(-1, 784),
            trial.pool_labels[some],
            trial.test.reshape(-1, 784),
            trial.test_labels,
        )
    trial = load_trial(data_dir, name, seed)
    return trial.pool, trial.pool_labels, trial.test, trial.test_labels


def standardise(X: np.ndarray, like: np.ndarray, together: bool) -> np.ndarray:
    """By column, or as a whole for images."""
    axis = None if together else 0
    scale = like.std(axis=axis)
    return ((X - like.mean(axis=axis)) / np.where(scale > 0, scale, 1.0)).astype(np.float32)


def run(name: str, selection: str, n: int, seed: int, data_dir: Path | None) -> float:
    pool, labels, test, truth = load(name, data_dir, seed)
    together = name != "parkinsons"
    rows = torch.from_numpy(standardise(pool, pool, together))
    task = "regression" if name == "parkinsons" else "classification"
    nothing = View(np.empty(0, dtype=np.int64), torch.empty(0, rows.shape[1]), None, torch.empty(0))
    snapshot = Snapshot(task, View(np.arange(len(rows)), rows, None, torch.empty(0)), nothing)
    streams = Streams(seed)
    scores = torch.from_numpy(streams.numpy("random").random(len(rows)))
    picks = SELECTIONS[selection](snapshot, scores, n, streams, Limits()).rows
    kind = ConstrainedRegressor if task == "regression" else ConstrainedClassifier
    model = kind((256, 256), objective="erm", epochs=60, lr=2e-3, batch_size=32, random_state=seed, device="cpu")
    model.fit(rows.numpy()[picks], labels[picks])
    predicted = model.predict(standardise(test, pool, together))
    return float(np.mean(predicted == truth)) if task == "classification" else float(np.mean((predicted - truth) ** 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cold_start.csv")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    names = ["digits"] if arguments.data_dir is None else ["digits", "mnist", "parkinsons"]
    results = pd.read_csv(arguments.out).to_dict("records") if arguments.out.exists() else []
    done = {(row["data"], row["selection"], row["n"], row["seed"]) for row in results}
    for name in names:
        for n in (20, 50, 100) if name != "parkinsons" else (50, 100, 200):
            for selection in SELECTIONS:
                for seed in range(arguments.seeds):
                    if (name, selection, n, seed) not in done:
                        value = run(name, selection, n, seed, arguments.data_dir)
                        results.append({"data": name, "selection": selection, "n": n, "seed": seed, "value": value})
                        pd.DataFrame(results).to_csv(arguments.out, index=False)
                values = [r["value"] for r in results if (r["data"], r["selection"], r["n"]) == (name, selection, n)]
                print(
                    f"{name:10s} {n:4d}  {selection:16s} {np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
