"""Many campaigns at once, one thread each; in a folder they can be interrupted and go on."""

from __future__ import annotations

import fcntl
import multiprocessing.connection
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from ally.errors import AllyError, InputError
from ally.experiment.cell import COLUMNS, Cell, Record
from ally.experiment.journal import Journal
from ally.experiment.simulate import campaign, simulate
from ally.experiment.trial import Trial
from ally.types import Progress

Load: TypeAlias = Callable[[str], Trial]
"""A trial by name. It is called in the workers, so that hidden labels and pools are not sent around; it must be importable by name."""
Cells: TypeAlias = Sequence[tuple[str, Cell]]
"""Names of trials, each with a cell."""

POLL = 0.5
"""Seconds between looks at how far the workers are."""


class CellsFailed(AllyError):
    """Some campaigns of a grid ended with an error; the others are on disk."""


def run_cells(load: Load, cells: Cells, workers: int, progress: Progress | None = None) -> pd.DataFrame:
    """Runs the cells in `workers` processes. The table has the columns of results.csv, in the order of the cells; an error ends it."""
    with _workers(workers) as pool:
        futures = [pool.submit(_run, load, name, cell) for name, cell in cells]
        while wait(futures, timeout=POLL, return_when="FIRST_EXCEPTION").not_done:
            if any(future.done() and future.exception() for future in futures):
                break
            if progress is not None:
                progress("campaigns", sum(future.done() for future in futures), len(cells))
        return table(record for future in futures for record in future.result())


def run_grid(load: Load, cells: Cells, out: Path, workers: int, progress: Progress | None = None) -> pd.DataFrame:
    """The same in a folder: every round is on disk when it ends, and rounds that are there are not run again.

    An error of one cell does not end the others. The table, also as ``results.csv``, holds all that the folder has.
    """
    with locked(out):
        journals = [Journal(cells_folder(out) / f"{cell.key(name)}.jsonl") for name, cell in cells]
        wanted = [cell.rounds + 1 for _, cell in cells]
        counts = [0] * len(cells)
        failed: list[str] = []
        with _workers(workers) as pool:
            running: dict[Future[None], int] = {}
            for number, ((name, cell), journal) in enumerate(zip(cells, journals, strict=True)):
                counts[number] = min(len(journal.rounds()), wanted[number])
                if not finished(journal, cell):
                    running[pool.submit(_record, load, name, cell, journal)] = number
            try:
                while running:
                    for future in wait(running, timeout=POLL).done:
                        number = running.pop(future)
                        if (error := future.exception()) is not None:
                            failed.append(f"{journals[number].path.stem}: {_told(error)}")
                        collect(out, cells)
                    for number in running.values():
                        counts[number] = min(len(journals[number].rounds()), wanted[number])
                    for number in set(range(len(cells))) - set(running.values()):
                        counts[number] = wanted[number]
                    if progress is not None:
                        progress("rounds", sum(counts), sum(wanted))
            finally:
                results = collect(out, cells)
    if failed:
        raise CellsFailed(f"{len(failed)} of {len(cells)} cells failed, the others are in {out}; run it again to try them: {failed[0]}")
    return results


def finished(journal: Journal, cell: Cell) -> bool:
    return len(journal.rounds()) > cell.rounds


def collect(out: Path, cells: Cells = ()) -> pd.DataFrame:
    """Writes ``results.csv`` from all that the folder holds: `cells` first and in their order, then others by name."""
    order = {f"{cell.key(name)}.jsonl": place for place, (name, cell) in enumerate(cells)}
    files = sorted(cells_folder(out).glob("*.jsonl"), key=lambda path: (order.get(path.name, len(order)), path.name))
    results = table(done.record for path in files for done in Journal(path).rounds())
    partial = out / "results.csv.part"
    results.to_csv(partial, index=False)
    partial.replace(out / "results.csv")
    return results


def table(records: Iterable[Record]) -> pd.DataFrame:
    return pd.DataFrame([asdict(record) for record in records], columns=COLUMNS)


def cells_folder(out: Path) -> Path:
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Only one grid runs in a folder at a time."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another process is running a grid in {out}; wait for it or choose another folder") from None
        yield


@contextmanager
def _workers(number: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread each; what has not begun is given up when the block fails."""
    with ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn"), initializer=_begin) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run(load: Load, name: str, cell: Cell) -> list[Record]:
    return list(simulate(load(name), cell))


def _record(load: Load, name: str, cell: Cell, journal: Journal) -> None:
    """Runs what is missing of a cell."""
    trial = load(name)
    with journal.writing({"dataset": name, **_settings(cell)}):
        for done in campaign(trial, cell, journal.rounds()):
            journal.add(done)


def _settings(cell: Cell) -> dict[str, Any]:
    """Everything that makes the cell what it is, as text, and with what it was run."""
    import torch

    import ally

    told = {name: repr(value) for name, value in vars(cell).items() if value is not None}
    return {**told, "strategy": cell.strategy, "composition": repr(cell.composition), "ally": ally.__version__, "torch": torch.__version__}


def _told(error: BaseException) -> str:
    if isinstance(error, BrokenProcessPool):
        return "its process was killed, perhaps for want of memory; use fewer workers"
    return f"{type(error).__name__}: {error}"


def _begin() -> None:
    """One thread for the work, and another that ends this process as soon as the one that started it is gone."""
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
