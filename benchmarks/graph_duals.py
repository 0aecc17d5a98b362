"""Constraints over the pool's graph: do moved multipliers predict better, and do their duals choose better?

    python benchmarks/graph_duals.py --data-dir DATA [--sets digits trec cifar10] [--text-encoder FOLDER]
        [--cache VECTORS] [--seeds 3] [--out benchmarks/results/graph_duals.csv]
    python benchmarks/graph_duals.py --table

Development splits only: of digits the first 900 of a permutation are the pool and the rest the test set, and of the
training samples of TREC and CIFAR-10, as vectors of an encoder, one half each. `random`: label spreading, multipliers
held equal, and multipliers moved, on the same random labels. `loop`: 20 random labels, then batches of 20 by coverage
with different weights; every line is measured by label spreading on the labels that it chose. Constants of the
constraints were chosen on digits. Finished cells of the output file are not run again.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import ally
from ally.constrained.smoothness import SmoothValues
from ally.data import as_source
from ally.learning.graph import GraphLearner
from ally.learning.graph_constraints import GraphConstraints
from ally.learning.graph_settings import SpreadLabels
from ally.learning.learner import Examples, Unlabelled
from ally.learning.objectives import ERM, PDCLUnlabelled
from ally.rng import streams
from ally.scoring import Margin, PredictedDual
from ally.selection import Herding
from ally.strategies import CATALOGUE, Strategy
from learners import Task, read

SIZES, FIRST, BATCH, LAST = (25, 50, 100, 200), 20, 20, 120
PRICED, HARD = PDCLUnlabelled(eps=0.001, price=300.0), PDCLUnlabelled()
HELD = 0.1
"""Multipliers held equal, in units of points per label."""
LINES = {
    "random": CATALOGUE["random"],
    "coverage, margins": Strategy(Margin(), Herding(weighted=True), "erm", "coverage weighted by margins"),
    "coverage, margins, constrained": Strategy(
        Margin(), Herding(weighted=True), PRICED, "coverage weighted by margins of a fit under constraints"
    ),
    "coverage, duals": Strategy(PredictedDual(), Herding(weighted=True), PRICED, "coverage weighted by pool duals"),
}
OUT = Path(__file__).parent / "results" / "graph_duals.csv"


class Split(NamedTuple):
    pool: Any
    labels: Any
    test: Any
    truth: Any


def load_split(folder: Path | None, name: str, text_encoder: str | None, kept: Path) -> Split:
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        first = 900
    else:
        assert folder is not None, "pass --data-dir"
        data = read(folder, Task(name, "encoder", ()), text_encoder, kept)
        X, y = np.asarray(data.pool), np.asarray(data.labels)
        first = len(X) // 2
    order = np.random.default_rng(0).permutation(len(X))
    pool, test = order[:first], order[first:]
    X = X.astype(np.float32)
    return Split(X[pool], y[pool], X[test], y[test])


def fit_random(split: Split, labels: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each way to train on the same random labels."""
    source, classes = as_source(split.pool), tuple(range(int(split.labels.max()) + 1))
    rows = np.sort(np.random.default_rng(seed).permutation(len(split.pool))[:labels])
    examples = Examples(source, rows, split.labels[rows].astype(float), "classification", classes)
    unlabelled = Unlabelled(source, np.setdiff1d(np.arange(len(split.pool)), rows))
    learner = GraphLearner().prepared(source, np.arange(len(source)))
    test = as_source(split.test)

    def measure(name: str, fitted: Any, seconds: float) -> dict[str, Any]:
        report = fitted.report
        return {
            "line": name,
            "labels": labels,
            "accuracy": float((fitted.predict(test) == split.truth).mean()),
            "positive_duals": report.positive_duals,
            "residual": report.dual_residual,
            "seconds": seconds,
        }

    fits = {}
    for name, objective in (("spreading", ERM()), ("moved, priced", PRICED), ("moved, hard", HARD)):
        began = time.process_time()
        fits[name] = learner.fit(examples, objective, streams(seed), unlabelled=unlabelled)
        yield measure(name, fits[name], time.process_time() - began)
    plain, moved = fits["spreading"], fits["moved, priced"]
    (pool,) = (one for one in learner.graphs if one.space is plain.space)
    values = SpreadLabels(np.eye(len(classes))[examples.labels.astype(int)], True)
    constraints = GraphConstraints(pool, plain.settings, plain.space.read(source, rows), values, PRICED)
    mean = float(np.concatenate([part.numpy() for part in moved.duals.values()]).mean())
    for name, level in (("held", HELD * len(source) / labels), ("held at the mean of the moved", mean)):
        began = time.process_time()
        problem = constraints.build_problem()
        duals = np.full(len(problem), level)
        found = problem.solve_held(duals)
        whole = SmoothValues(found, duals, problem.measure_smoothness(found), 0.0, 0)
        read_ = constraints.read(problem, whole, np.arange(labels))
        fitted = replace(plain, masses=read_.masses.astype(np.float32), settings=read_.settings)
        yield measure(name, fitted, time.process_time() - began)


def run_loop(split: Split, name: str, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each number of labels."""
    classes = [*range(int(split.labels.max()) + 1)]
    known = np.random.default_rng(seed).permutation(len(split.pool))[:FIRST]
    y: list[Any] = [None] * len(split.pool)
    for row in known:
        y[row] = int(split.labels[row])
    loop = ally.Loop(split.pool, y, strategy=LINES[name], model="graph", classes=classes, random_state=seed)
    source, test = as_source(split.pool), as_source(split.test)
    measured_by = GraphLearner().prepared(source, np.arange(len(source)))
    for labels in range(FIRST, LAST + 1, BATCH):
        rows = np.sort(known)
        examples = Examples(source, rows, split.labels[rows].astype(float), "classification", tuple(classes))
        fitted = measured_by.fit(examples, ERM(), streams(seed))
        yield {"line": name, "labels": labels, "accuracy": float((fitted.predict(test) == split.truth).mean())}
        if labels < LAST:
            asked = loop.ask(BATCH)
            chosen = np.asarray(asked.ids, dtype=np.int64)
            loop.tell(asked.id, {int(row): int(split.labels[row]) for row in chosen})
            known = np.concatenate([known, chosen])


def print_table(out: Path) -> None:
    """Mean accuracies, as docs/learners.md has them."""
    found = pd.read_csv(out)
    for (kind, data), group in found.groupby(["kind", "data"], sort=False):
        means = group.pivot_table(index="line", columns="labels", values="accuracy", sort=False)
        print(f"\n{kind}, {data}\n\n| | " + " | ".join(map(str, means.columns)) + " |\n|---|" + "---|" * means.shape[1])
        for line, values in means.iterrows():
            print(f"| {line} | " + " | ".join(f"{value:.3f}"[1:] for value in values) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ALLY_DATA"))
    parser.add_argument("--sets", nargs="*", default=["digits", "trec", "cifar10"])
    parser.add_argument("--text-encoder", default=None, help="the folder of all-MiniLM-L6-v2")
    parser.add_argument("--cache", type=Path, default=Path("vectors"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        print_table(given.out)
        return
    results = pd.read_csv(given.out).to_dict("records") if given.out.exists() else []
    done = {(row["kind"], row["data"], row["seed"], row["line"], row["labels"]) for row in results}
    folder = None if given.data_dir is None else Path(given.data_dir)
    split_of = cache(lambda name: load_split(folder, name, given.text_encoder, given.cache))

    def keep(kind: str, data: str, seed: int, rows: Iterator[dict[str, Any]]) -> None:
        results.extend({"kind": kind, "data": data, "seed": seed, **row} for row in rows)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(results).to_csv(given.out, index=False, float_format="%.5g")
        print(kind, data, seed, results[-1]["line"], results[-1]["labels"], results[-1]["accuracy"], flush=True)

    for seed in range(given.seeds):
        for data in given.sets:
            for labels in SIZES:
                if ("random", data, seed, "held", labels) not in done:
                    keep("random", data, seed, fit_random(split_of(data), labels, seed))
            for name in LINES:
                if ("loop", data, seed, name, LAST) not in done:
                    keep("loop", data, seed, run_loop(split_of(data), name, seed))


if __name__ == "__main__":
    main()
