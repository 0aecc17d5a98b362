"""Every strategy of the catalogue on one task: accuracy, seconds of a query, memory.

    python benchmarks/catalogue.py PART [--data-dir DATA] [--seeds 3] [--workers 2] [--only NAME ...]

    accuracy     every strategy: 200 random labels, then 7 batches of 200 diversity    ALLY's predicted dual with each
    technique that makes a batch diverse, the same rounds objectives   random, margin, badge, ally-clusters, each
    trained by erm, pdcl, smooth-unlabelled and pdcl-unlabelled: 100 random labels, then
                 6 batches of 150 (ally-clusters needs duals: under erm it accumulates losses instead, and trains as
                 erm does; a penalty has none)
    cost         one query of 200 after 1000 random labels in a fresh process: seconds, and peak memory above that
    before the query

With DATA/mnist: MLP 2×256 on images standardised as a whole, Adam at .005 (× .97 per epoch), batches of 64, 30 epochs,
no validation labels, no early stopping, no hygiene; the same starting sets and initial weights for all; accuracy on the
10 000 test images. smooth-unlabelled and pdcl-unlabelled train at .002. BAIT asks about 10 000 images drawn at random
in `accuracy`. BatchBALD is run in `cost` only, with batches of 5. Without DATA: scikit-learn's digits, 20 random labels
and 9 batches of 20. Tables go to benchmarks/results; what is in them is not run again.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ally import Loop, Strategy
from ally.experiment import COLUMNS, Cell, Trial, run_cells
from ally.experiment.demo import DIGITS, demo_trial
from ally.experiment.presets.beyond import DUAL, TECHNIQUES
from ally.learning.objectives import OverPool, resolve_objective
from ally.learning.training import Training
from ally.strategies import CATALOGUE, DUALS
from mnist import load as load_mnist

RESULTS = Path(__file__).parent / "results"
OBJECTIVES = ("erm", "pdcl", "smooth-unlabelled", "pdcl-unlabelled")


def settings(strategy: Strategy, digits: bool) -> dict[str, Any]:
    """The model and its training; constraints over the pool take many more steps, at a smaller rate."""
    if digits:
        return dict(DIGITS)
    slow = isinstance(resolve_objective(strategy.objective), OverPool)
    return {"model": "mlp", "training": Training(lr=2e-3 if slow else 5e-3, epochs=30, batch_size=64)}


def cells(part: str, seeds: int, digits: bool) -> Iterator[Cell]:
    for seed in range(seeds):
        if part == "objectives":
            rounds = {"init": 20, "batch": 20, "rounds": 4} if digits else {"init": 100, "batch": 150, "rounds": 6}
            for objective in OBJECTIVES:
                for name in ("random", "margin", "badge", "ally-clusters")[
                    : 3 if objective == "smooth-unlabelled" else 4
                ]:
                    trained = {"pdcl": DUALS, "erm": "accumulated-loss" if name == "ally-clusters" else "erm"}.get(
                        objective, objective
                    )
                    strategy = replace(CATALOGUE[name], objective=trained)
                    yield Cell(name, seed, setting=objective, custom=strategy, **rounds, **settings(strategy, digits))
            continue
        rounds = {"init": 20, "batch": 20, "rounds": 9} if digits else {"init": 200, "batch": 200, "rounds": 7}
        if part == "diversity":
            for name, select in TECHNIQUES.items():
                strategy = Strategy(DUAL, select, DUALS)
                yield Cell(name, seed, custom=strategy, **rounds, **settings(strategy, digits))
            continue
        for name, strategy in CATALOGUE.items():
            if "classification" in strategy.tasks and name != "batchbald":
                few = {"candidates": 10_000, "setting": "10000 candidates"} if name == "bait" and not digits else {}
                yield Cell(name, seed, **rounds, **settings(strategy, digits), **few)


def trial(data_dir: Path | None, name: str) -> Trial:
    return demo_trial("digits") if data_dir is None else load_mnist(data_dir, name)


def run_part(part: str, data_dir: Path | None, seeds: int, workers: int, only: list[str] | None) -> None:
    """Cell by cell, each appended to the table when it is done."""
    out = RESULTS / f"{part if part != 'accuracy' else 'catalogue'}{'' if data_dir else '_digits'}.csv"
    results = pd.read_csv(out, keep_default_na=False) if out.exists() else pd.DataFrame(columns=COLUMNS)
    done = set(zip(results["strategy"], results["setting"], results["seed"].astype(int), strict=True))
    todo = [
        cell for cell in cells(part, seeds, data_dir is None) if (cell.strategy, cell.setting, cell.seed) not in done
    ]
    todo = [cell for cell in todo if only is None or cell.strategy in only]
    for start in range(0, len(todo), workers):
        group = [("digits" if data_dir is None else "mnist", cell) for cell in todo[start : start + workers]]
        fresh = run_cells(partial(trial, data_dir), group, workers)
        results = pd.concat([results, fresh], ignore_index=True) if len(results) else fresh
        results.to_csv(out, index=False)
        for (strategy, setting, seed), rows in fresh.groupby(["strategy", "setting", "seed"], sort=False):
            mean, train, query = (
                rows["value"][1:].mean(),
                rows["train_seconds"].median(),
                rows["query_seconds"][:-1].median(),
            )
            print(
                f"{strategy:32s} {setting:16s} seed {seed}  {mean:.4f}  train {train:6.1f} s  query {query:6.2f} s",
                flush=True,
            )


def cost(data_dir: Path | None, name: str) -> dict[str, object]:
    """Seconds and peak memory of one query, in this process."""
    torch.set_num_threads(1)
    strategy = Strategy(DUAL, TECHNIQUES[name], DUALS) if name in TECHNIQUES else CATALOGUE[name]
    data = trial(data_dir, "mnist")
    known = np.random.default_rng(0).permutation(len(data.pool))[: 100 if data_dir is None else 1000]
    labels = np.full(len(data.pool), None, dtype=object)
    labels[known] = data.pool_labels[known]
    more = settings(strategy, data_dir is None)
    loop = Loop(
        data.pool,
        labels,
        strategy=strategy,
        classes=data.classes,
        random_state=0,
        model=more["model"],
        training=more["training"],
    )
    loop.fit()
    n = 5 if name == "batchbald" else 20 if data_dir is None else 200
    before = resident()
    started = time.perf_counter()
    loop.ask(n)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "strategy": name,
        "setting": "" if n != 5 else "batches of 5",
        "query_seconds": seconds,
        "peak_mib": (peak - before) / 2**20,
    }


def resident() -> int:
    """Bytes of this process in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def run_cost(data_dir: Path | None, only: list[str] | None) -> None:
    """One process per strategy, one at a time."""
    names = [name for name, entry in CATALOGUE.items() if "classification" in entry.tasks] + list(TECHNIQUES)
    out = RESULTS / f"catalogue_cost{'' if data_dir else '_digits'}.csv"
    results = pd.read_csv(out, keep_default_na=False).to_dict("records") if out.exists() else []
    for name in names:
        if (only is None or name in only) and name not in {row["strategy"] for row in results}:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                row = pool.submit(cost, data_dir, name).result()
            results.append(row)
            pd.DataFrame(results).to_csv(out, index=False)
            print(f"{name:32s} {row['query_seconds']:7.2f} s  {row['peak_mib']:6.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["accuracy", "diversity", "objectives", "cost"])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="names of strategies or techniques")
    arguments = parser.parse_args()
    if arguments.part == "cost":
        run_cost(arguments.data_dir, arguments.only)
    else:
        run_part(arguments.part, arguments.data_dir, arguments.seeds, arguments.workers, arguments.only)


if __name__ == "__main__":
    main()
