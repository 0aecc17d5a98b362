"""Many campaigns at once, one thread each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from typing import Any

import pandas as pd

from ally.experiment.simulate import COLUMNS, Cell, Trial, simulate
from ally.types import Progress


def run_cells(
    load: Callable[[str], Trial], cells: Sequence[tuple[str, Cell]], workers: int, progress: Progress | None = None
) -> pd.DataFrame:
    """Runs ``(name of a trial, cell)`` pairs in `workers` processes; a table with the columns of results.csv, in the order of the cells.

    `load` is called in the worker, so that hidden labels and pools are not sent around; it must be importable by name.
    """
    records: list[dict[str, Any]] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        futures = [pool.submit(_run, load, name, cell) for name, cell in cells]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                records += future.result()
                if progress is not None:
                    progress("campaigns", done, len(cells))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    asked = {(name, cell.strategy): place for place, (name, cell) in reversed(list(enumerate(cells)))}
    trials = {name: place for place, (name, _) in reversed(list(enumerate(cells)))}
    records.sort(key=lambda r: (trials[r["dataset"]], asked[r["dataset"], r["strategy"]], r["seed"], r["round"]))
    return pd.DataFrame(records, columns=COLUMNS)


def _run(load: Callable[[str], Trial], name: str, cell: Cell) -> list[dict[str, Any]]:
    return [asdict(record) for record in simulate(load(name), cell)]


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
