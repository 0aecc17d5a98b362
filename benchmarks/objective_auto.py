"""What ``objective="auto"`` is worth: one network, trained by each of its candidates and by the one that it chooses.

    python benchmarks/objective_auto.py --data-dir DATA [--data digits ...] [--lines auto ...] [--seeds 5] [--out FILE]
    python benchmarks/objective_auto.py --page    # the tables of docs/learners.md

Pools of at most 5000 samples, labels at random, the same for all lines; the error is the share of wrong labels, or the
root mean squared error, on at most 2000 samples that are not in the pool. `smooth-unlabelled` is as by name,
`smooth-unlabelled, near` with the radius that "auto" takes from the distances between neighbours. `graph` is label
spreading on the same labels: another way to learn from the pool, and no network. Seconds are of CPU, for everything up
to the trained model. Finished cells of the output file are not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from ally import Loop
from ally.data.catalogue import load
from ally.learning.auto_objective import AutoObjective, objective_name
from ally.learning.objectives import Objective, SmoothUnlabelled

HERE = Path(__file__).parent
OUT = HERE / "results" / "objective_auto.csv"
PAGE = HERE.parent / "docs" / "learners.md"
MARKS = ("<!-- objectives -->", "<!-- end of objectives -->")
FIELDS = ("data", "model", "line", "labels", "seed", "metric", "error", "seconds", "chosen")
SETS = {"digits": "mlp", "kin8nm": "mlp", "ptd-total": "mlp", "mnist": "mlp", "cifar10": "cnn"}
SIZES = (50, 200)
POOL, TEST = 5000, 2000
NEAR = "smooth-unlabelled, near"
OBJECTIVES: dict[str, str | Objective] = {
    "erm": "erm",
    "pdcl": "pdcl",
    "smooth-unlabelled": "smooth-unlabelled",
    NEAR: AutoObjective((SmoothUnlabelled(),)),
    "auto": "auto",
}
LINES = (*OBJECTIVES, "graph")


class Data(NamedTuple):
    task: Any
    pool: Any
    labels: Any
    test: Any
    truth: Any


@cache
def read(data_dir: Path, name: str) -> Data:
    data = load(name, data_dir)
    rng = np.random.default_rng(0)
    pool = np.sort(rng.permutation(len(data.pool_labels))[:POOL])
    test = np.sort(rng.permutation(len(data.test_labels))[:TEST])
    return Data(
        data.task,
        np.asarray(data.pool[pool]),
        np.asarray(data.pool_labels)[pool],
        np.asarray(data.test[test]),
        np.asarray(data.test_labels)[test],
    )


def measure(data: Data, model: str, line: str, count: int, seed: int) -> tuple[float, float, str]:
    """The error, seconds of CPU, and the objective."""
    labels = np.full(len(data.labels), None, dtype=object)
    rows = np.random.default_rng(seed).permutation(len(labels))[:count]
    labels[rows] = data.labels[rows]
    began = time.process_time()
    loop = Loop(
        data.pool,
        labels,
        strategy="random",
        objective=OBJECTIVES.get(line, "erm"),
        model=line if line == "graph" else model,
        task=data.task,
        classes=np.unique(data.labels).tolist() if data.task == "classification" else None,
        random_state=seed,
        device="cpu",
    )
    loop.fit()
    seconds = time.process_time() - began
    predicted = loop.predict(data.test)
    if data.task == "classification":
        error = float(np.mean(predicted != data.truth))
    else:
        error = float(np.sqrt(np.mean(np.square(predicted.astype(float) - data.truth))))
    return error, seconds, objective_name(loop.objective)


def cells(names: list[str], lines: list[str], seeds: range) -> Iterator[tuple[str, str, int, int]]:
    for seed in seeds:
        for name in names:
            for count in SIZES:
                for line in lines:
                    if line != "graph" or name not in ("kin8nm", "ptd-total"):
                        yield name, line, count, seed


def run(data_dir: Path, names: list[str], lines: list[str], seeds: range, out: Path) -> None:
    done = set()
    if out.exists():
        before = pd.read_csv(out)
        done = set(zip(before["data"], before["line"], before["labels"], before["seed"], strict=True))
    for name, line, count, seed in cells(names, lines, seeds):
        if (name, line, count, seed) in done:
            continue
        data = read(data_dir, name)
        error, seconds, chosen = measure(data, SETS[name], line, count, seed)
        metric = "wrong" if data.task == "classification" else "rmse"
        row = (name, SETS[name], line, count, seed, metric, f"{error:.6g}", f"{seconds:.3g}", chosen)
        new = not out.exists()
        with out.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(FIELDS)
            writer.writerow(row)
        print(*row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ALLY_DATA"))
    parser.add_argument("--data", nargs="*", choices=list(SETS))
    parser.add_argument("--lines", nargs="*", choices=LINES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
        after = re.split(re.escape(MARKS[1]), rest, maxsplit=1)[1]
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{tables(given.out)}\n\n{MARKS[1]}{after}", encoding="utf-8")
        return
    torch.set_num_threads(1)
    names, lines = given.data or list(SETS), given.lines or list(LINES)
    run(Path(given.data_dir), names, lines, range(given.seeds), given.out)


def tables(out: Path) -> str:
    """Mean errors over the seeds that all fixed objectives have, with the seconds of a training; then what "auto"
    chose, seed by seed."""
    found = pd.read_csv(out)
    fixed = ["erm", "pdcl", NEAR, "graph"]
    lines = [
        f"| set, network | labels | seeds | {' | '.join(f'`{line}`' for line in fixed)} | {NEAR}, of `erm` |",
        f"|{'---|' * (len(fixed) + 4)}",
    ]
    choices = ["| set | labels | seed | `auto` chose | error | `erm` | seconds |", f"|{'---|' * 7}"]
    for (name, model, labels), part in found.groupby(["data", "model", "labels"]):
        errors = part.pivot(index="seed", columns="line", values="error").reindex(columns=LINES)
        seconds = part.groupby("line")["seconds"].mean()
        shared = errors.dropna(subset=["erm", "pdcl", NEAR])
        if shared.empty:
            continue
        whole = shared.dropna(axis="columns").mean()
        cells = [f"{whole[line]:.3g} ({seconds[line]:.1f} s)" if line in whole else "" for line in fixed]
        ratios = shared[NEAR] / shared["erm"]
        told = f"{ratios.mean():.2f} ({ratios.min():.2f} … {ratios.max():.2f})"
        lines.append(f"| {name}, {model} | {labels} | {len(shared)} | {' | '.join(cells)} | {told} |")
        plain = errors["erm"].to_dict()
        for row in part[part["line"] == "auto"].to_dict("records"):
            told = f"{row['chosen']} | {row['error']:.3g} | {plain[row['seed']]:.3g} | {row['seconds']:.0f}"
            choices.append(f"| {name} | {labels} | {row['seed']} | {told} |")
    return "\n".join([*lines, "", *choices])


if __name__ == "__main__":
    main()
