"""Does active learning pay on these data? A grid from names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ally.checks import check_count
from ally.errors import InputError
from ally.experiment.cell import Cell
from ally.experiment.folder import Grid, run, trial
from ally.experiment.trial import Trial
from ally.learning.objectives import Objective, resolve_objective
from ally.learning.training import Training
from ally.models import MODELS
from ally.strategies import CATALOGUE
from ally.types import Progress


def bench(
    datasets: str | Sequence[str],
    strategies: str | Sequence[str] = ("ally", "badge", "margin", "random"),
    *,
    out: str | Path,
    seeds: int = 5,
    init: int | None = None,
    batch: int | None = None,
    rounds: int = 8,
    models: str | Sequence[str | None] | None = None,
    objectives: str | Objective | Sequence[str | Objective | None] | None = None,
    validation: int = 0,
    candidates: int | None = None,
    training: Training = Training(),
    target: str | None = None,
    data_dir: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Simulated campaigns of every strategy on every data set, in the folder `out`; run again, it goes on where it was.

    Args:
        datasets: names that ``ally datasets`` lists, table files (with `target`) or folders of images by class.
        strategies: names of the catalogue. Those not defined for a data set's task are left out there, with a note.
        seeds: campaigns per strategy; a seed sets the start, the weights and the strategy's own draws.
        init: random labels at the start; by default as many as a batch, and at least two per class.
        batch: labels per round; by default a hundredth of the pool, between 10 and 200.
        rounds: batches after the start. It may be raised later.
        models: names of networks; None is the default for the kind of data.
        objectives: how the networks are trained; None as each strategy says.
        validation: labels bought at the start for early stopping; they are counted.
        candidates: ask only about so many samples of the pool, drawn at random.

    Returns:
        The table that is also in ``out/results.csv``.
    """
    names = _listed("datasets", datasets)
    chosen = _listed("strategies", strategies)
    check_count("seeds", seeds)
    folder = None if data_dir is None else Path(data_dir)
    cells: list[tuple[str, Cell]] = []
    settings: dict[str, str] = {}
    notes: list[str] = []
    for name in names:
        data = trial(folder, target, name)
        size = batch or min(200, max(10, data.size // 100))
        start = init or max(size, 2 * len(data.classes or ()))
        fitting = [strategy for strategy in chosen if data.task in CATALOGUE[strategy].tasks]
        notes += [f"{strategy} is not defined for {data.task}, so not run on {name}" for strategy in chosen if strategy not in fitting]
        if not fitting:
            raise InputError(f"none of {', '.join(chosen)} is defined for {data.task} ({name}); add 'random' or 'coreset'")
        settings[name] = _told(data, start, size, rounds, validation, candidates)
        for seed, model, objective, strategy in itertools.product(
            range(seeds), _listed("models", models), _listed("objectives", objectives), fitting
        ):
            if isinstance(model, str):
                MODELS[model]
            if objective is not None:
                resolve_objective(objective)
            cells.append((name, Cell(strategy, seed, start, size, rounds, model, training, objective, "", None, candidates, validation)))
    settings["training"] = repr(training)
    grid = Grid(f"Active learning on {', '.join(names)}", "Does it pay to choose which samples are labelled?", tuple(cells), settings,
                tuple(notes), baseline="random" if "random" in chosen else chosen[0])  # fmt: skip
    return run(grid, Path(out), data_dir=folder, target=target, workers=workers, progress=progress, say=say)


def _listed(name: str, values: Any) -> list[Any]:
    """One value or several, in order, each once."""
    several = values if isinstance(values, (list, tuple)) else [values]
    if not several:
        raise InputError(f"{name} is empty; name at least one")
    return list(dict.fromkeys(several))


def _told(data: Trial, init: int, batch: int, rounds: int, validation: int, candidates: int | None) -> str:
    parts = [f"{data.task}, pool of {data.size}, {len(data.test_labels)} for testing", f"{init} random labels, then {rounds} x {batch}"]
    parts += [f"{validation} validation labels, counted"] if validation else ["no validation labels"]
    parts += [f"{candidates} random candidates"] if candidates is not None else []
    return "; ".join(parts)
