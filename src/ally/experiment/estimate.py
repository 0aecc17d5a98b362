"""How long a grid will take, from a tenth of one training and two small queries of each kind of cell."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ally.data import Oracle
from ally.experiment.cell import Cell
from ally.experiment.run import Cells, Load
from ally.experiment.simulate import begin
from ally.experiment.trial import Trial
from ally.learning.auto_objective import objective_of
from ally.learning.learner import GROWTH
from ally.learning.objectives import OverPool
from ally.rng import Streams

PARTS = 10
"""A training is tried with this fraction of its epochs or steps."""
CANDIDATES = 500, 2000
"""Queries are tried on this many samples."""


def estimate(load: Load, cells: Cells) -> float:
    """Rough estimate of the seconds of one core for all `cells`, excluding first-use compilation."""
    trials: dict[str, Trial] = {}
    costs: dict[Any, Callable[[int, int], float]] = {}
    total = 0.0
    for name, cell in cells:
        trial, times = trials.setdefault(name, load(name)), 1
        if cell.leader is not None:
            # Two trainings a round, taken to be alike.
            cell, times = cell.leader, 2
        kind = (name, cell.composition, cell.trained_by, str(cell.model), cell.training, cell.copies)
        if kind not in costs:
            costs[kind] = _cost(trial, cell)
        size = min(cell.candidates or trial.size, trial.size)
        total += times * sum(costs[kind](cell.init + number * cell.batch, size) for number in range(cell.rounds + 1))
    return total


def _cost(trial: Trial, cell: Cell) -> Callable[[int, int], float]:
    """Seconds of a round as a function of the labels so far and the number of candidates."""
    objective = objective_of(cell.trained_by)
    # A training with early stopping is tried in full: nobody knows when it will stop.
    early = cell.validation > 0 and cell.training.keep == "best"
    epochs = cell.training.epochs if early else max(1, cell.training.epochs // PARTS)
    parts = cell.training.epochs / epochs
    if isinstance(objective, OverPool):
        steps = max(1, objective.steps // PARTS)
        objective, parts = replace(objective, steps=steps), objective.steps / steps
    tried = replace(
        cell,
        training=replace(cell.training, epochs=epochs),
        objective=objective,
        copies=None,
        validation=cell.validation if early else 0,
    )
    # The first try does not count: it includes compiling and loading.
    _try(trial, replace(tried, candidates=CANDIDATES[0]))
    times = [_try(trial, replace(tried, candidates=size)) for size in CANDIDATES]
    choices, trainings, queries = zip(*times, strict=True)
    choice = min(choices) if cell.chooses else 0.0
    training = parts * min(trainings)
    slope = max(0.0, queries[1] - queries[0]) / (CANDIDATES[1] - CANDIDATES[0])
    others = max((readout.members for readout in cell.composition.readouts), default=1) - 1

    def seconds(labels: int, candidates: int) -> float:
        steps_grow = 1.0 if isinstance(objective, OverPool) else labels / cell.init
        # A choice is made again when labels have grown by half.
        chosen = choice * min(1.0, cell.batch / max(1.0, (GROWTH - 1) * labels))
        return float(chosen + (1 + others) * training * steps_grow + queries[0] + slope * candidates)

    return seconds


def _try(trial: Trial, cell: Cell) -> tuple[float, float, float]:
    """Seconds of a choice of the learner, of a training and of a query."""
    loop = begin(trial, cell, Oracle(trial.pool_labels), Streams(cell.seed))
    began = time.perf_counter()
    _ = loop.learner
    chosen = time.perf_counter()
    loop.fit()
    fitted = time.perf_counter()
    if cell.rounds:
        loop.ask(min(cell.batch, loop.free))
    return chosen - began, fitted - chosen, time.perf_counter() - fitted


def in_words(seconds: float) -> str:
    """Seconds in a readable form."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} seconds"
