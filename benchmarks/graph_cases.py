"""Where the graph of the pool should help, and where it could do harm: ``model="auto"`` with it and without.

    python benchmarks/graph_cases.py [--seeds 5] [--case NAME ...]    # goes on where it stopped
    python benchmarks/graph_cases.py --page                           # the table of docs/learners.md

Small sets made by this script or shipped with scikit-learn; labels are drawn at random, the same for both. The error is
the share of wrong labels on samples that are not in the pool.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.datasets import load_digits, make_circles, make_moons

from ally.data import as_source
from ally.errors import AllyError
from ally.learning.auto import AutoLearner
from ally.learning.learner import Examples
from ally.learning.objectives import ERM
from ally.learning.training import Training
from ally.rng import streams

HERE = Path(__file__).parent
OUT = HERE / "results" / "graph_cases.csv"
PAGE = HERE.parent / "docs" / "learners.md"
FIELDS = ("case", "labels", "seed", "with", "without", "weight")
SIZES = (20, 60)
MARKS = ("<!-- graph cases -->", "<!-- end of graph cases -->")


class Case(NamedTuple):
    pool: Any
    labels: Any
    """Of the pool, as they are told."""
    test: Any
    truth: Any
    first: Any = None
    """Rows that labels come from; None for all."""


def split(X: Any, y: Any, rng: np.random.Generator, share: float = 0.6) -> Case:
    order = rng.permutation(len(X))
    cut = int(share * len(X))
    return Case(X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]])


def digits(rng: np.random.Generator) -> Case:
    return split(*load_digits(return_X_y=True), rng)


def moons(rng: np.random.Generator) -> Case:
    """Two moons, with samples of both on a bridge between them."""
    X, y = make_moons(1500, noise=0.12, random_state=int(rng.integers(2**31)))
    along = rng.random(60)[:, None]
    bridge = (1 - along) * np.asarray([[1.0, 0.2]]) + along * np.asarray([[0.0, 0.3]])
    return split(np.concatenate([X, bridge]), np.concatenate([y, (along[:, 0] > 0.5).astype(int)]), rng)


def rings(rng: np.random.Generator) -> Case:
    X, y = make_circles(1500, noise=0.06, factor=0.6, random_state=int(rng.integers(2**31)))
    return split(X, y, rng)


def flipped(share: float) -> Callable[[np.random.Generator], Case]:
    def make(rng: np.random.Generator) -> Case:
        case = digits(rng)
        wrong = rng.random(len(case.labels)) < share
        return case._replace(labels=np.where(wrong, (case.labels + rng.integers(1, 10, len(wrong))) % 10, case.labels))

    return make


def rare(rng: np.random.Generator) -> Case:
    """Three Gaussian classes, one of which is a hundredth of the pool."""
    y = rng.choice(3, size=4000, p=[0.6, 0.39, 0.01])
    means = 1.5 * np.random.default_rng(9).standard_normal((3, 10))
    return split(means[y] + rng.standard_normal((4000, 10)), y, rng)


def noise(rng: np.random.Generator) -> Case:
    """Two columns decide, thirty more are noise of larger scale."""
    X = rng.standard_normal((2000, 32))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X[:, 2:] *= rng.uniform(1, 100, 30)
    return split(X, y, rng)


def corner(rng: np.random.Generator) -> Case:
    """Labels come from the half of the digits with the darkest pictures."""
    case = digits(rng)
    ink = case.pool.sum(axis=1)
    return case._replace(first=np.flatnonzero(ink >= np.median(ink)))


def copies(rng: np.random.Generator) -> Case:
    """A third of the pool is there five times."""
    case = digits(rng)
    third = np.arange(len(case.pool) // 3)
    rows = np.concatenate([np.arange(len(case.pool)), np.tile(third, 4)])
    return case._replace(pool=case.pool[rows], labels=case.labels[rows])


def unseen(rng: np.random.Generator) -> Case:
    """Two of ten classes have no label yet."""
    case = digits(rng)
    return case._replace(first=np.flatnonzero(case.labels < 8))


def many(rng: np.random.Generator) -> Case:
    """200 classes of some ten samples, some hundred of them without a label."""
    means = 2.0 * np.random.default_rng(9).standard_normal((200, 20))
    y = rng.integers(200, size=3000)
    return split(means[y] + rng.standard_normal((3000, 20)), y, rng)


CASES: dict[str, tuple[str, Callable[[np.random.Generator], Case]]] = {
    "digits": ("digits", digits),
    "moons": ("two moons with a bridge", moons),
    "rings": ("a ring inside another", rings),
    "flipped 10": ("digits, 10 % of the labels wrong", flipped(0.1)),
    "flipped 20": ("digits, 20 % of the labels wrong", flipped(0.2)),
    "rare": ("a class of .01 of the pool", rare),
    "noise": ("two columns that count among 30 of noise", noise),
    "corner": ("digits, labels from the darkest half", corner),
    "copies": ("digits, a third of them five times", copies),
    "unseen": ("digits, two classes without a label", unseen),
    "many": ("200 classes", many),
}


def measure(case: Case, count: int, seed: int) -> tuple[float, float, float]:
    """The errors with the graph and without it, and its weight."""
    source, test = as_source(case.pool.astype(np.float32)), as_source(case.test.astype(np.float32))
    allowed = np.arange(len(source)) if case.first is None else case.first
    rows = np.sort(np.random.default_rng(seed).permutation(allowed)[:count])
    classes = tuple(np.unique(np.concatenate([case.labels, case.truth])).tolist())
    examples = Examples(source, rows, np.searchsorted(classes, case.labels[rows]), "classification", classes)
    errors, weight = [], 0.0
    for without in ((), ("graph",)):
        auto = AutoLearner(Training(device="cpu"), without=without).prepared(source, np.arange(len(source)))
        settled = auto.settled(examples, ERM(), streams(seed))
        assert settled.chosen is not None
        if not without:
            alone = float(settled.chosen.candidate.name == "graph")
            weight = settled.chosen.weights.get("graph", alone)
        predicted = settled.fit(examples, ERM(), streams(seed)).predict(test)
        errors.append(float(np.mean(predicted != case.truth)))
    return errors[0], errors[1], weight


def table() -> str:
    found = pd.read_csv(OUT)
    lines = [
        f"Share of wrong labels, `auto` with the graph / without it, {found['seed'].nunique()} seeds; in brackets the "
        "mean weight of the graph.",
        "",
        "| | 20 labels | 60 labels | paired difference over both, 95 % interval |",
        "|---|---|---|---|",
    ]
    for name, part in found.groupby("case", sort=False):
        cells = []
        for count in SIZES:
            here = part[part["labels"] == count].mean(numeric_only=True)
            cells.append(f"{here['with']:.3f} / {here['without']:.3f} ({here['weight']:.2f})")
        gains = (part["with"] - part["without"]).groupby(part["seed"]).mean()
        half = float(t.ppf(0.975, len(gains) - 1) * gains.std() / np.sqrt(len(gains)))
        lines.append(
            f"| {CASES[str(name)][0]} | {' | '.join(cells)} | {gains.mean():+.3f} ({gains.mean() - half:+.3f} … "
            f"{gains.mean() + half:+.3f}) |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--case", nargs="*", choices=list(CASES))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
        after = re.split(re.escape(MARKS[1]), rest, maxsplit=1)[1]
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{table()}\n\n{MARKS[1]}{after}", encoding="utf-8")
        return
    done = set()
    if given.out.exists():
        kept = pd.read_csv(given.out)
        done = set(zip(kept["case"], kept["labels"], kept["seed"], strict=True))
    for seed in range(given.seeds):
        for name in given.case or CASES:
            for count in SIZES:
                if (name, count, seed) in done:
                    continue
                case = CASES[name][1](np.random.default_rng([seed, len(name)]))
                try:
                    found = measure(case, count, seed)
                except AllyError as error:
                    raise SystemExit(f"{name}, {count} labels, seed {seed}: {error}") from error
                new = not given.out.exists()
                with given.out.open("a", newline="") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    if new:
                        writer.writerow(FIELDS)
                    writer.writerow([name, count, seed, *(f"{value:.4f}" for value in found)])
        print(f"seed {seed} done", flush=True)


if __name__ == "__main__":
    main()
