"""How often λ moves: `ally-paper` with every reading of Algorithm 1, on digits and MNIST.

    python benchmarks/paper_duals.py --data-dir DATA [--sets digits mnist] [--out benchmarks/results/paper_duals.csv]

steps: every λ moves after each step of the optimiser. epochs: every λ moves after each pass over the labelled samples.
batches: λ moves once an epoch too, by the loss that the sample had when its batch was trained on, before the step, as
in the authors' code.

All train as the paper does, stopped by a fixed random validation set with patience 2; its labels are counted. A round
is one line: accuracy, the share of positive λ and their mean, the rank correlation of λ predicted for the pool with the
pool's true loss, and that of the head with held-out λ. Finished campaigns in the output file are not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr

from ally.data import Oracle
from ally.experiment import Cell, Trial
from ally.experiment.simulate import begin
from ally.learning.dual_head import PaperHead
from ally.learning.objectives import PDCL
from ally.learning.snapshot import Snapshot
from ally.learning.training import Training
from ally.rng import Streams
from ally.scoring import PredictedDual, Scored
from ally.selection import ClusterTop
from ally.strategies import CATALOGUE, Strategy
from label_efficiency import digits
from mnist import load_development

READINGS = {
    "steps": PDCL(slacks="all"),
    "epochs": PDCL(slacks="all", dual_every="epoch"),
    "batches": PDCL(),
}
OTHERS = ("random", "margin")
SETS = {"digits": (5, 100, 100, 4, 1e-3), "mnist": (3, 200, 200, 4, 5e-3)}
"""Seeds, first labels, batch, rounds, η_p."""
VALIDATION, POOL, TEST = 100, 10_000, 5000


@dataclass(frozen=True)
class Watched(PredictedDual):
    """A predicted dual that keeps what it was read from."""

    seen: list[tuple[Snapshot, torch.Tensor]] = field(default_factory=list, compare=False, repr=False)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        scored = super().__call__(snapshot, streams)
        self.seen.append((snapshot, scored.scores))
        return scored


def load(data_dir: Path, name: str) -> Trial:
    if name == "digits":
        return Trial(name, "classification", *digits(np.random.default_rng(0)))
    whole = load_development(data_dir, name)
    rows = np.random.default_rng(0).permutation(whole.size)[:POOL]
    return replace(
        whole,
        pool=whole.pool[rows],
        pool_labels=whole.pool_labels[rows],
        test=whole.test[:TEST],
        test_labels=whole.test_labels[:TEST],
    )


def campaign(trial: Trial, line: str, seed: int) -> Iterator[dict[str, Any]]:
    _, init, batch, rounds, lr = SETS[trial.name]
    watched = Watched(PaperHead())
    strategy = CATALOGUE[line] if line in OTHERS else Strategy(watched, ClusterTop(), READINGS[line], patience=2)
    training = Training(lr=lr, epochs=100, patience=2, batch_size=64 if trial.name == "mnist" else 16)
    cell = Cell(line, seed, init, batch, rounds, "mlp", training=training, custom=strategy, validation=VALIDATION)
    oracle = Oracle(trial.pool_labels)
    loop = begin(trial, cell, oracle, Streams(seed))
    for number in range(rounds + 1):
        report = loop.fit().report
        row: dict[str, Any] = {
            "dataset": trial.name,
            "reading": line,
            "seed": seed,
            "labels": oracle.bought,
            "accuracy": float((loop.predict(trial.test) == trial.test_labels).mean()),
            "epochs": report.kept_epoch,
            "positive_duals": report.positive_duals,
        }
        if number < rounds:
            query = loop.ask(batch)
            if line not in OTHERS:
                snapshot, scores = watched.seen[-1]
                rows = snapshot.candidates.rows
                chances = snapshot.candidates.probabilities.double().numpy()
                truth = np.searchsorted(np.unique(trial.pool_labels), trial.pool_labels[rows])
                loss = -np.log(np.maximum(chances[np.arange(len(rows)), truth], 1e-30))
                row["mean_dual"] = float(snapshot.duals.mean())
                row["rank_of_pool_loss"] = float(spearmanr(scores.numpy(), loss).statistic)
                row["rank_quality"] = query.report["rank_quality"]
            loop.tell(query.id, oracle.answer(query.ids.tolist()))
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "paper_duals.csv")
    given = parser.parse_args()
    torch.set_num_threads(1)
    results = pd.read_csv(given.out).to_dict("records") if given.out.exists() else []
    done = {(row["dataset"], row["reading"], row["seed"]) for row in results}
    for name in given.sets:
        trial = load(given.data_dir, name)
        for seed in range(SETS[name][0]):
            for line in (*READINGS, *OTHERS):
                if (name, line, seed) in done:
                    continue
                results += campaign(trial, line, seed)
                pd.DataFrame(results).to_csv(given.out, index=False, float_format="%.5g")
                print(name, line, seed, f"{results[-1]['accuracy']:.4f}", flush=True)


if __name__ == "__main__":
    main()
