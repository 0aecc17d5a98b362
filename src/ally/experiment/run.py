"""Many campaigns at once; in a folder they can be interrupted and resumed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

import ally
from ally.errors import AllyError, DataError, InputError
from ally.execution.resolve import is_ray
from ally.experiment.cell import COLUMNS, Cell, Record
from ally.experiment.journal import Journal
from ally.experiment.ray_tasks import tasks_through
from ally.experiment.simulate import campaign, simulate
from ally.experiment.trial import Trial
from ally.experiment.workers import work_through
from ally.files import open_in_place, write_whole
from ally.types import Progress

Load: TypeAlias = Callable[[str], Trial]
"""A trial by name. It is called in the workers, so that hidden labels and pools are not sent around; it must be
importable by name."""
Cells: TypeAlias = Sequence[tuple[str, Cell]]
"""Names of trials, each with a cell."""


class CellsFailed(AllyError):
    """Some campaigns of a grid ended with an error; the others are on disk."""


def run_cells(load: Load, cells: Cells, workers: int, progress: Progress | None = None) -> pd.DataFrame:
    """Runs the cells in `workers` processes. The table has the columns of results.csv, in the order of the cells; an
    error ends it."""
    found: dict[int, list[Record]] = {}
    with closing(work_through(_run, [(load, name, cell) for name, cell in cells], workers)) as ended:
        for one in ended:
            if one is not None and one.error is not None:
                raise one.error
            if one is not None:
                found[one.number] = one.result
            if progress is not None:
                progress("campaigns", len(found), len(cells))
    return table(record for number in sorted(found) for record in found[number])


def run_grid(load: Load, cells: Cells, out: Path, workers: int, progress: Progress | None = None) -> pd.DataFrame:
    """The same in a folder: every round is on disk when it ends, and rounds that are there are not run again.

    An error of one cell does not end the others. The table, also as ``results.csv``, holds the rounds of these cells.
    """
    with locked(out):
        return run_in(out, load, cells, workers, progress)


def run_in(
    out: Path, load: Load, cells: Cells, workers: int, progress: Progress | None = None, engine: str = "local"
) -> pd.DataFrame:
    """The same in a folder that is locked already; or as tasks of a Ray cluster, all of whose machines see it."""
    todo = missing(out, load, cells)
    wanted = [cell.rounds + 1 for _, cell in cells]
    running = set(todo)
    failed: list[str] = []

    def tell() -> None:
        if progress is not None:
            done = (
                min(len(journal(out, *cells[number]).rounds()), wanted[number]) if number in running else wanted[number]
                for number in range(len(cells))
            )
            progress("rounds", sum(done), sum(wanted))

    data = {name: load(name).fingerprint for name in dict.fromkeys(cells[number][0] for number in todo)}
    calls = [(load, *cells[number], journal(out.absolute(), *cells[number]), data[cells[number][0]]) for number in todo]
    through = tasks_through(_record, calls, engine) if is_ray(engine) else work_through(_record, calls, workers)
    with closing(through) as ended:
        for one in ended:
            if one is not None:
                running.discard(todo[one.number])
                if one.error is not None:
                    failed.append(f"{calls[one.number][3].path.stem}: {one.error}")
                collect(out, cells)
            tell()
    results = collect(out, cells)
    if failed:
        raise CellsFailed(
            f"{len(failed)} of {len(cells)} cells failed, the others are in {out}; run it again to try them: "
            f"{failed[0]}"
        )
    return results


def missing(out: Path, load: Load, cells: Cells) -> list[int]:
    """Which of the cells are not finished. Raises if the folder's contents come from other data or settings."""
    fingerprints = {name: load(name).fingerprint for name in dict.fromkeys(name for name, _ in cells)}
    same = {repr(list(cell.identity(name))): (name, cell) for name, cell in cells}
    for path in sorted(cells_folder(out).glob("*.jsonl")):
        settings = Journal(path).settings
        own = same.get(repr(settings.get("identity")))
        if own is not None and journal(out, *own).path != path:
            now = {field: _told(field, value) for field, value in vars(own[1]).items() if field != "rounds"}
            changed = [field for field, value in now.items() if settings.get(field, "None") != value]
            others = ", ".join(f"{field}={settings.get(field)}" for field in changed) or "another composition"
            if own[1].chooses and settings.get("chooses_again") == "False":
                others = "a learner chosen once, from its first labels, which is now chosen again as labels grow"
            raise InputError(f"{out} holds {path.stem}, the same campaign with {others}; choose another folder")
    todo = []
    for number, (name, cell) in enumerate(cells):
        done = journal(out, name, cell)
        before = done.settings.get("data", fingerprints[name])
        if before != fingerprints[name]:
            raise InputError(
                f"{out} holds {done.path.stem}, made when {name} had other data, labels or settings, or was read in "
                "another way; choose another folder"
            )
        if len(done.rounds()) <= cell.rounds:
            todo.append(number)
    return todo


def journal(out: Path, name: str, cell: Cell) -> Journal:
    return Journal(out / "cells" / f"{cell.key(name)}.jsonl")


def collect(out: Path, cells: Cells | None = None) -> pd.DataFrame:
    """Writes ``results.csv``: the rounds of `cells` in their order, or all that the folder holds."""
    if cells is None:
        rounds = [Journal(path).rounds() for path in sorted(cells_folder(out).glob("*.jsonl"))]
    else:
        rounds = [journal(out, name, cell).rounds()[: cell.rounds + 1] for name, cell in cells]
    results = table(done.record for several in rounds for done in several)
    write_whole(out / "results.csv", results.to_csv(index=False).encode())
    return results


def table(records: Iterable[Record]) -> pd.DataFrame:
    found = pd.DataFrame([asdict(record) for record in records], columns=COLUMNS)
    return found.astype({"positive_duals": float, "rank_quality": float})


def cells_folder(out: Path) -> Path:
    folder = out / "cells"
    if folder.is_symlink():
        raise InputError(f"{folder} is a link, and is not followed; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Only one grid runs in a folder at a time."""
    out.mkdir(parents=True, exist_ok=True)
    with os.fdopen(open_in_place(out / ".lock", os.O_RDWR | os.O_CREAT), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another process is running a grid in {out}; wait for it or choose another folder"
            ) from None
        yield


def _run(load: Load, name: str, cell: Cell) -> list[Record]:
    return list(simulate(load(name), cell))


def _record(load: Load, name: str, cell: Cell, journal: Journal, fingerprint: str) -> None:
    """Run the missing rounds of a cell, on data of this fingerprint."""
    trial = load(name)
    if trial.fingerprint != fingerprint:
        raise DataError(f"{name} changed while the benchmark ran; run it again in another folder")
    with journal.writing(_settings(trial, name, cell)):
        for done in campaign(trial, cell, journal.rounds()):
            journal.add(done)


def _settings(trial: Trial, name: str, cell: Cell) -> dict[str, Any]:
    """Everything that defines the cell, as text, and the versions it was run with."""
    import torch

    told = {field: _told(field, value) for field, value in vars(cell).items() if value is not None}
    versions = {"ally": ally.__version__, "torch": torch.__version__}
    known = {
        "dataset": name,
        "data": trial.fingerprint,
        "identity": cell.identity(name),
        "composition": repr(cell.composition),
    }
    return {**told, **known, **versions}


def _told(field: str, value: Any) -> str:
    return str(value) if field == "strategy" else repr(value)
