"""`ally-unlabelled`: duals of smoothness constraints over the whole pool, as training and as a choice.

    python benchmarks/pool_duals.py --data-dir DATA [--sets digits parkinsons mnist] [--seeds 3]
        [--out benchmarks/results/pool_duals.csv]

Every strategy is trained by the same constraints over the labels and the pool (`PDCLUnlabelled`), so that what differs
is the choice alone; random and margin (LCMD for numbers) are also trained plainly. MLP, 30 epochs, no validation set.
mnist: 10 000 random training images as the pool. parkinsons: total_UPDRS standardised, a random split; mean squared
error. Seeds go first. Finished campaigns in the output file are not run again.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ally.experiment import Cell, Trial, simulate
from ally.learning.training import Training
from label_efficiency import digits
from unlabelled import load

SETS = {"digits": (50, 50, 4), "parkinsons": (200, 200, 4), "mnist": (100, 100, 3)}
"""First labels, batch and rounds."""
POOL, TEST = 10_000, 5000
PLAIN, POOLED = "erm", "pdcl-unlabelled"


def trial_of(data_dir: Path, name: str, seed: int) -> Trial:
    if name == "digits":
        return Trial(name, "classification", *digits(np.random.default_rng(0)))
    whole = load(data_dir, name, seed)
    if name == "parkinsons":
        return whole
    rows = np.random.default_rng(0).permutation(whole.size)[:POOL]
    return replace(
        whole,
        pool=whole.pool[rows],
        pool_labels=whole.pool_labels[rows],
        test=whole.test[:TEST],
        test_labels=whole.test_labels[:TEST],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "pool_duals.csv")
    given = parser.parse_args()
    torch.set_num_threads(1)
    results = pd.read_csv(given.out).to_dict("records") if given.out.exists() else []
    done = {(row["dataset"], row["strategy"], row["objective"], row["seed"]) for row in results}
    for seed in range(given.seeds):
        for name in given.sets:
            trial = trial_of(given.data_dir, name, seed)
            strong = "lcmd" if trial.task == "regression" else "margin"
            lines = [
                ("ally-unlabelled", POOLED),
                *((line, by) for by in (POOLED, PLAIN) for line in ("random", strong)),
            ]
            for line, objective in lines:
                if (name, line, objective, seed) in done:
                    continue
                training = Training(lr=2e-3, epochs=30, batch_size=64)
                cell = Cell(line, seed, *SETS[name], "mlp", training=training, objective=objective)
                for record in simulate(trial, cell):
                    results.append(
                        {
                            "dataset": name,
                            "strategy": line,
                            "objective": objective,
                            "seed": seed,
                            "labels": record.labels,
                            "value": record.value if trial.task == "classification" else record.value**2,
                            "positive_duals": record.positive_duals,
                            "train_seconds": record.train_seconds,
                        }
                    )
                pd.DataFrame(results).to_csv(given.out, index=False, float_format="%.5g")
                print(seed, name, line, objective, f"{results[-1]['value']:.4f}", flush=True)


if __name__ == "__main__":
    main()
