"""The measurements behind the settings of `ally-clusters`: head, shortlist and constraint level.

    python benchmarks/ally_defaults.py --data-dir DATA [--seeds 3] [--trial mnist-dev parkinsons] [--out FILE.csv]

mnist-dev: protocol of catalogue.py, but the pool is the first 50 000 training images and accuracy is measured on the
other 10 000, so that MNIST's test set takes no part in choosing. parkinsons: total UPDRS of the Parkinsons
telemonitoring data without the subject number, a fixed random split (1175 of 5875 for measuring), MLP 2×256, Adam at
.001, 40 epochs, 200 random labels and 9 batches of 200. Variants already in the output file are not run again.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ally.experiment import COLUMNS, Cell, Trial, run_cells
from ally.learning.dual_head import PaperHead
from ally.learning.objectives import PDCL
from ally.learning.training import Training
from ally.scoring import Constant, PredictedDual
from ally.selection import ClusterTop
from ally.strategies import CATALOGUE, Strategy
from mnist import load_development

TIGHT = PDCL(eps=0.01)
BOTH = {
    "random": CATALOGUE["random"],
    "coreset": CATALOGUE["coreset"],
    "clusters of the pool, no score": Strategy(Constant(), ClusterTop()),
    "ally-clusters, all candidates": Strategy(PredictedDual(), ClusterTop(), TIGHT),
    "ally-clusters, 5 b highest": Strategy(PredictedDual(), ClusterTop(shortlist=5), TIGHT),
    "ally-clusters, 10 b highest": Strategy(PredictedDual(), ClusterTop(shortlist=10), TIGHT),
    "ally-clusters, 20 b highest (default)": CATALOGUE["ally-clusters"],
    "ally-clusters, eps of the paper": Strategy(PredictedDual(), ClusterTop(shortlist=20), PDCL()),
    "ally-clusters, eps auto": Strategy(PredictedDual(), ClusterTop(shortlist=20), PDCL(eps="auto")),
    "ally-clusters, the paper's head": Strategy(PredictedDual(PaperHead()), ClusterTop(shortlist=20), TIGHT),
}
CLASSIFICATION = {"margin": CATALOGUE["margin"], "badge": CATALOGUE["badge"]}
PROTOCOL = {
    "mnist-dev": ({"rounds": 7, "training": Training(lr=5e-3, epochs=30, batch_size=64)}, {**BOTH, **CLASSIFICATION}),
    "parkinsons": (
        {"rounds": 9, "training": Training(lr=1e-3, epochs=40)},
        {**BOTH, "kmeanspp": CATALOGUE["kmeanspp"]},
    ),
}


def load(data_dir: Path, name: str) -> Trial:
    if name == "mnist-dev":
        return load_development(data_dir, name)
    table = pd.read_csv(data_dir / "parkinsons" / "parkinsons_updrs.data")
    y = table["total_UPDRS"].to_numpy(dtype=float)
    X = table.drop(columns=["subject#", "motor_UPDRS", "total_UPDRS"]).to_numpy(dtype=float)
    order = np.random.default_rng(0).permutation(len(X))
    test, pool = order[:1175], order[1175:]
    y = (y - y[pool].mean()) / y[pool].std()
    return Trial(name, "regression", X[pool], y[pool], X[test], y[test])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trial", nargs="*", default=list(PROTOCOL))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "ally_defaults.csv")
    arguments = parser.parse_args()

    results = (
        pd.read_csv(arguments.out, keep_default_na=False) if arguments.out.exists() else pd.DataFrame(columns=COLUMNS)
    )
    for name in arguments.trial:
        protocol, variants = PROTOCOL[name]
        for variant, strategy in variants.items():
            done = set(results[(results["dataset"] == name) & (results["strategy"] == variant)]["seed"])
            cells = [
                (name, Cell(variant, seed, init=200, batch=200, model="mlp", custom=strategy, **protocol))
                for seed in range(arguments.seeds)
                if seed not in done
            ]
            if cells:
                fresh = run_cells(partial(load, arguments.data_dir), cells, arguments.workers)
                results = pd.concat([results, fresh], ignore_index=True) if len(results) else fresh
                arguments.out.parent.mkdir(parents=True, exist_ok=True)
                results.to_csv(arguments.out, index=False)
            part = results[(results["dataset"] == name) & (results["strategy"] == variant) & (results["labels"] >= 400)]
            values = part["value"] if name == "mnist-dev" else part["value"].astype(float) ** 2
            curve = values.groupby(part["seed"]).mean()
            metric = "accuracy" if name == "mnist-dev" else "mean squared error"
            print(
                f"{name:10s} {variant:32s} {metric} {curve.mean():.4f} ± {curve.std():.4f}  ({len(curve)} seeds)",
                flush=True,
            )


if __name__ == "__main__":
    main()
