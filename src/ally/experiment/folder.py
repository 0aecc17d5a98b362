"""A grid in a folder: cells, results, and notes for whoever reads them."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

import ally
from ally.data.catalogue.own_data import DataOptions
from ally.execution.resolve import ensure_named, is_ray
from ally.experiment.cell import Cell, model_name, objective_name
from ally.experiment.estimate import estimate, in_words
from ally.experiment.journal import Journal
from ally.experiment.opening import open_trial
from ally.experiment.ray_tasks import cpus
from ally.experiment.run import Load, cells_folder, journal, locked, missing, run_in
from ally.files import write_whole
from ally.learning.auto_objective import objective_of
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
    baseline: str | None = None
    """The baseline for the others; None means random, if it is run."""


def run(
    grid: Grid,
    out: Path,
    *,
    data: DataOptions = DataOptions(),
    workers: int | None = None,
    engine: str = "local",
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Run the missing cells of a grid in the folder `out`. `say` gets the notes and the estimated time."""
    ensure_named(engine)
    load_trial: Load = partial(open_trial, data)
    for name, cell in grid.cells:
        cell.ensure_fits(load_trial(name))
    with locked(out):
        todo = missing(out, load_trial, grid.cells)
        notes = [
            *grid.notes,
            *data_notes(load_trial, (name for name, _ in grid.cells)),
            *_uneven(load_trial, grid.cells),
            *_others(out, grid),
            *_versions(out),
        ]
        if say is not None:
            for note in notes:
                say(f"note: {note}")
        most = cpus(engine) if is_ray(engine) else available_cores() if workers is None else workers
        number = min(most, max(1, len(todo)))
        if say is not None and todo:
            seconds = estimate(load_trial, [grid.cells[place] for place in todo]) / max(1, number)
            where = f"with {number} processes" if number else "in this process"
            say(f"{len(todo)} of {len(grid.cells)} campaigns to run {where}: about {in_words(seconds)}")
        write_settings(out, grid, notes, constants(load_trial, grid.cells))
        return run_in(out, load_trial, grid.cells, number, progress, engine)


def data_notes(load_trial: Load, names: Iterable[str]) -> list[str]:
    """Notes on each data set, as sentences."""
    return [f"{name}: {note}" for name in dict.fromkeys(names) for note in load_trial(name).notes]


def _uneven(load_trial: Load, cells: Sequence[tuple[str, Cell]]) -> list[str]:
    """A sentence for each data set that is measured by accuracy and has rare classes."""
    names = dict.fromkeys(name for name, cell in cells if cell.metric in (None, "accuracy"))
    found = ((name, load_trial(name).imbalance()) for name in names)
    return [f"{name}: {words}" for name, words in found if words is not None]


def constants(load_trial: Load, cells: Sequence[tuple[str, Cell]]) -> dict[str, float]:
    """By data set, the score of a constant answer on its test set, which a model has to beat."""
    metrics = {name: cell.metric for name, cell in cells if cell.copies is None}
    found = {name: load_trial(name).constant(metric) for name, metric in metrics.items()}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _others(out: Path, grid: Grid) -> list[str]:
    """A sentence if the folder holds campaigns that are not part of the grid."""
    own = {journal(out, name, cell).path for name, cell in grid.cells}
    others = len(set(cells_folder(out).glob("*.jsonl")) - own)
    if not others:
        return []
    campaigns = "1 other campaign in {} is" if others == 1 else f"{others} other campaigns in {{}} are"
    return [f"{campaigns.format(out)} not part of these results; name all of them in one command to compare them"]


def _versions(out: Path) -> list[str]:
    """A sentence if cells in the folder were run with other versions."""
    import torch

    now = {"ally": ally.__version__, "torch": torch.__version__}
    found = [Journal(path).settings for path in cells_folder(out).glob("*.jsonl")]
    return [
        f"some campaigns were run with {part} {', '.join(sorted(others))}"
        for part, version in now.items()
        if (others := {str(settings[part]) for settings in found if settings.get(part, version) != version})
    ]


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_settings(out: Path, grid: Grid, notes: list[str], constants: Mapping[str, float]) -> None:
    """``settings.json``: what a report says besides the figures."""
    import torch

    facts = {
        "title": grid.title,
        "question": grid.question,
        "baseline": grid.baseline,
        "substitute": grid.substitute,
        "notes": notes,
        "settings": grid.settings,
        "constants": dict(constants),
        "environment": {
            "ally": ally.__version__,
            "torch": torch.__version__,
            "Python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}, {available_cores()} cores",
        },
    }
    write_whole(out / "settings.json", json.dumps(facts, indent=2, ensure_ascii=False).encode())


def told(listed: tuple[tuple[str, Cell], ...]) -> dict[str, str]:
    """Data, networks, ε, batches, rounds, labels and seeds of some cells, as a reader wants them."""
    every = [cell for _, cell in listed]
    return {
        "data": _each(name for name, _ in listed),
        "network": _each(model_name(cell.model) for cell in every),
        "training": _each(repr(cell.training) for cell in every),
        "objectives": _each(objective_name(cell.trained_by) for cell in every),
        "ε": _each(_eps(cell) for cell in every if _eps(cell)) or "none",
        "initial labels": _each(str(cell.init) for cell in every),
        "validation labels": _each(str(cell.validation) for cell in every),
        "batch": _each(str(cell.batch) for cell in every),
        "rounds": _each(str(cell.rounds) for cell in every),
        "final labels": _each(str(cell.labels) for cell in every),
        "candidates": _each(
            "all" if cell.candidates is None else f"{cell.candidates} drawn at random" for cell in every
        ),
        "test samples": _each("all" if cell.test is None else f"{cell.test} drawn at random" for cell in every),
        "metric": _each(cell.metric or "accuracy (classes) or rmse (numbers)" for cell in every),
        "hygiene": _each("none" if cell.hygiene is None else repr(cell.hygiene) for cell in every),
        "seeds": str(len({cell.seed for cell in every})),
        "strategies": _each(f"{cell.strategy}{f' ({cell.setting})' if cell.setting else ''}" for cell in every),
    }


def _eps(cell: Cell) -> str:
    """ε of the objective, if it has one; None stands for the paper's values."""
    objective = objective_of(cell.trained_by)
    if not hasattr(objective, "eps"):
        return ""
    return "0.2 (classes) or 0.1 (targets)" if objective.eps is None else str(objective.eps)


def _each(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))
