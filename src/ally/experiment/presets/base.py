"""What presets are made of: a scale, a test bed, and cells that share everything but what is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ally.datasets import DATASETS, default_data_dir, state
from ally.experiment.cell import Cell, model_name, objective_name
from ally.experiment.folder import Grid
from ally.experiment.trial import Metric
from ally.learning.objectives import Objective, resolve_objective
from ally.learning.training import Training
from ally.strategies import Strategy

Scale: TypeAlias = Literal["smoke", "small", "full"]
SCALES: dict[Scale, str] = {
    "smoke": "seconds, on data that ships with scikit-learn: does it run?",
    "small": "minutes to an hour on two cores: fewer rounds, seeds or strategies",
    "full": "the paper's size",
}


@dataclass(frozen=True)
class Bed:
    """A data set with the network and the trainer that every strategy on it shares."""

    dataset: str
    model: str
    training: Training
    metric: Metric | None = None
    candidates: int | None = None
    validation: int = 0
    """Labels for early stopping; they are counted."""


MNIST = Bed("mnist", "mlp", Training(lr=5e-3, epochs=30, batch_size=64))
CIFAR10 = Bed("cifar10", "resnet18-slim", Training(lr=1e-3, epochs=30, batch_size=64))
SVHN = replace(CIFAR10, dataset="svhn")
STL10 = replace(CIFAR10, dataset="stl10", model="resnet18-stl")
TINY_IMAGENET = replace(CIFAR10, dataset="tiny-imagenet")
PARKINSONS = Bed("ptd-total", "mlp", Training(lr=5e-3, epochs=80, batch_size=64, patience=10), "mse", validation=100)
# Chosen with random labels within the pool: without early stopping 200 labels are learnt by heart.
DIGITS = Bed("digits", "mlp", Training(lr=2e-3, epochs=10, batch_size=16))
DIABETES = Bed("diabetes", "mlp", Training(lr=2e-3, epochs=10, batch_size=16), "mse")


@dataclass(frozen=True)
class Rounds:
    """Random labels at the start, then batches; the same for `seeds` seeds."""

    init: int
    batch: int
    rounds: int
    seeds: int


SMOKE = Rounds(init=20, batch=10, rounds=2, seeds=2)


@dataclass(frozen=True)
class Variant:
    """One line of a figure: a strategy, and what is changed about it."""

    strategy: str
    setting: str = ""
    custom: Strategy | None = None
    objective: str | Objective | None = None
    changes: tuple[tuple[str, Any], ...] = ()
    """Other fields of `Cell`."""
    seeds: int | None = None
    """Fewer than the others have, where it is expensive."""


@dataclass(frozen=True)
class Preset:
    """An experiment of the paper, or one that its text calls for."""

    title: str
    figure: str
    """Where the paper shows it."""
    claim: str
    """What the paper says, or what is asked."""
    build: Callable[[Scale, Path | None], Grid] | None
    """From a scale and the folder of the data; None for what is no grid."""


def cells(bed: Bed, rounds: Rounds, variants: Iterable[Variant]) -> Iterator[tuple[str, Cell]]:
    """Seed by seed, so that an interrupted grid compares like with like."""
    lines = list(variants)
    for seed in range(rounds.seeds):
        for line in lines:
            if line.seeds is None or seed < line.seeds:
                cell = Cell(line.strategy, seed, rounds.init, rounds.batch, rounds.rounds, bed.model, bed.training, line.objective,
                            line.setting, line.custom, bed.candidates, bed.validation, metric=bed.metric)  # fmt: skip
                yield bed.dataset, replace(cell, **dict(line.changes))


def grid(
    title: str,
    question: str,
    scale: Scale,
    made: Iterable[tuple[str, Cell]],
    *,
    notes: Iterable[str] = (),
    substitute: str | None = None,
) -> Grid:
    """The settings in words come from the cells themselves."""
    listed = tuple(made)
    reduced = {"smoke": ("data that ships with scikit-learn, to see that it runs: no result",), "small": (), "full": ()}[scale]
    return Grid(title, question, listed, {"scale": f"{scale}: {SCALES[scale]}", **told(listed)}, (*reduced, *notes), substitute)


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
        "candidates": _each("all" if cell.candidates is None else f"{cell.candidates} drawn at random" for cell in every),
        "seeds": str(len({cell.seed for cell in every})),
        "strategies": _each(f"{cell.strategy}{f' ({cell.setting})' if cell.setting else ''}" for cell in every),
    }


def _eps(cell: Cell) -> str:
    """ε of the objective, if it has one; None stands for the paper's values."""
    objective = resolve_objective(cell.trained_by)
    if not hasattr(objective, "eps"):
        return ""
    return "0.2 (classes) or 0.1 (targets)" if objective.eps is None else str(objective.eps)


def _each(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def bed_or(bed: Bed, other: Bed, data_dir: Path | None) -> tuple[Bed, str | None]:
    """The bed, or another where its data are not here, with the words that say so."""
    if state(DATASETS[bed.dataset], data_dir or default_data_dir()) != "absent":
        return bed, None
    return other, f"{other.dataset} with {other.model} stands in for {bed.dataset}, whose files are not here"
