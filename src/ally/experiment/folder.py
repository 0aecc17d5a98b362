"""A grid in a folder: cells, results, and what a reader of them has to know."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

import pandas as pd

from ally.datasets import load
from ally.experiment.cell import Cell
from ally.experiment.estimate import estimate, in_words
from ally.experiment.journal import Journal
from ally.experiment.run import Load, cells_folder, finished, run_grid
from ally.experiment.trial import Trial
from ally.types import Progress


@dataclass(frozen=True)
class Grid:
    """Campaigns that belong together, and the question they answer."""

    title: str
    question: str
    cells: tuple[tuple[str, Cell], ...] = field(repr=False)
    """Names of data sets, each with a cell."""
    settings: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    substitute: str | None = None
    """What was replaced by what, if anything was."""
    baseline: str = "random"


def run(
    grid: Grid,
    out: Path,
    *,
    data_dir: Path | None = None,
    target: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Runs what is missing of a grid in the folder `out`. `say` hears how long it may take."""
    load_trial: Load = partial(trial, data_dir, target)
    notes: list[str] = list(grid.notes)
    for name in dict.fromkeys(name for name, _ in grid.cells):
        notes += [f"{name}: {note}" for note in load(name, data_dir, target=target).notes]
        for other, cell in grid.cells:
            if other == name:
                cell.ensure_fits(load_trial(name))
    missing = [(name, cell) for name, cell in grid.cells if not finished(Journal(cells_folder(out) / f"{cell.key(name)}.jsonl"), cell)]
    workers = max(1, min(workers or available_cores(), len(missing)))
    if say is not None and missing:
        seconds = estimate(load_trial, missing) / workers
        say(f"{len(missing)} of {len(grid.cells)} campaigns to run with {workers} processes: about {in_words(seconds)}")
    write_settings(out, grid, notes)
    return run_grid(load_trial, grid.cells, out, workers, progress)


@lru_cache(maxsize=4)
def trial(data_dir: Path | None, target: str | None, name: str) -> Trial:
    return Trial.of(load(name, data_dir, target=target))


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_settings(out: Path, grid: Grid, notes: list[str]) -> None:
    """``settings.json``: what a report says beside the figures."""
    import torch

    import ally

    told = {
        "title": grid.title,
        "question": grid.question,
        "baseline": grid.baseline,
        "substitute": grid.substitute,
        "notes": notes,
        "settings": grid.settings,
        "environment": {
            "ally": ally.__version__,
            "torch": torch.__version__,
            "Python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}, {available_cores()} cores",
        },
    }
    partial_file = out / "settings.json.part"
    partial_file.write_text(json.dumps(told, indent=2, ensure_ascii=False), encoding="utf-8")
    partial_file.replace(out / "settings.json")
