"""The whole story on data that ships with scikit-learn: digits (classification) and diabetes (regression)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from ally.estimators import ConstrainedClassifier, ConstrainedRegressor
from ally.experiment.simulate import COLUMNS, Cell, Trial, simulate
from ally.learning.training import Training
from ally.strategies import CATALOGUE
from ally.types import Progress, Task

HIDDEN = (64, 64)
TRAINING = Training(lr=2e-3, epochs=30, batch_size=16, device="cpu")


def demo_trial(task: Task) -> Trial:
    """One fixed split: seeds vary the start, the weights and the strategy, not the test set."""
    load, size = (load_digits, 600) if task == "classification" else (load_diabetes, 142)
    X, y = load(return_X_y=True)
    pool, test, pool_labels, test_labels = train_test_split(X, y, test_size=size, random_state=0)
    return Trial("digits" if task == "classification" else "diabetes", task, pool, pool_labels, test, test_labels)


def demo_cells(seeds: int) -> Iterator[tuple[Task, Cell]]:
    """Every strategy × seed, longest first."""
    sizes: dict[Task, tuple[int, int, int]] = {"classification": (20, 20, 9), "regression": (20, 15, 8)}
    for task, (init, batch, rounds) in sizes.items():
        model = ConstrainedClassifier(HIDDEN) if task == "classification" else ConstrainedRegressor(HIDDEN)
        names = sorted((name for name, entry in CATALOGUE.items() if task in entry.tasks), key=_cost, reverse=True)
        for seed in range(seeds):
            for name in names:
                yield task, Cell(name, seed, init, batch, rounds, model=model, training=TRAINING)


def run_demo(seeds: int, workers: int, progress: Progress | None = None) -> pd.DataFrame:
    """Runs all cells in `workers` processes of one thread each; a table with the columns of results.csv."""
    cells = list(demo_cells(seeds))
    records: list[dict[str, object]] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        futures = [pool.submit(_run, task, cell) for task, cell in cells]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                records += future.result()
                if progress is not None:
                    progress("campaigns", done, len(cells))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    table = pd.DataFrame(records, columns=COLUMNS)
    order = {name: place for place, name in enumerate(CATALOGUE)}
    return table.sort_values(
        ["dataset", "strategy", "seed", "round"], key=lambda c: c.map(order) if c.name == "strategy" else c, ignore_index=True
    )


def _run(task: Task, cell: Cell) -> list[dict[str, object]]:
    return [asdict(record) for record in simulate(demo_trial(task), cell)]


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
    np.seterr(all="warn")


def _cost(name: str) -> int:
    return {"bait": 3, "ally-paper": 2, "ally": 1}.get(name, 0)
