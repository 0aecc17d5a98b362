"""What presets are made of: a scale, a test bed, a protocol, and cells that share everything but what is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ally.data.catalogue import DATASETS, default_data_dir, state
from ally.experiment.cell import Cell
from ally.experiment.folder import Grid, told
from ally.experiment.protocol import Protocol, under
from ally.learning.objectives import Objective
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
    """Training for the protocol `fixed`: the number of epochs without early stopping."""
    metric: str | None = None
    validation: int = 200
    """Labels for early stopping in the other protocols; they are counted."""


MNIST = Bed("mnist", "mlp", Training(lr=5e-3, epochs=30, batch_size=64))
CIFAR10 = Bed("cifar10", "resnet18-slim", Training(lr=1e-3, epochs=30, batch_size=64))
SVHN = replace(CIFAR10, dataset="svhn")
STL10 = replace(CIFAR10, dataset="stl10", model="resnet18-stl")
TINY_IMAGENET = replace(CIFAR10, dataset="tiny-imagenet")
PARKINSONS = Bed("ptd-total", "mlp", Training(lr=5e-3, epochs=40, batch_size=64), "mse", validation=100)
# 40 epochs were chosen with random labels within the pool: fewer are worse from 600 labels on, more are worse at 200.
DIGITS = Bed("digits", "mlp", Training(lr=2e-3, epochs=10, batch_size=16), validation=20)
DIABETES = Bed("diabetes", "mlp", Training(lr=2e-3, epochs=10, batch_size=16), "mse", validation=20)


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
    make: Callable[[Scale, Path | None], Grid] | None
    """Makes the grid from a scale and the data folder; None if the experiment is not a grid."""
    protocol: Protocol = "paper"
    """How its networks are trained unless asked otherwise."""

    def build(self, scale: Scale, data_dir: Path | None = None, protocol: Protocol | None = None) -> Grid:
        """The grid at a scale; `small` says in which settings it is less than `full`."""
        protocol = protocol or self.protocol
        grid = self._trained(scale, data_dir, protocol)
        if scale != "small":
            return grid
        whole = self._trained("full", data_dir, protocol)
        less = [
            f"{what}: {value} instead of {whole.settings[what]}"
            for what, value in grid.settings.items()
            if what not in ("scale", "strategies", "objectives") and value != whole.settings[what]
        ]
        kept = {(cell.strategy, cell.setting) for _, cell in grid.cells}
        gone = [(cell.strategy, cell.setting) for _, cell in whole.cells if (cell.strategy, cell.setting) not in kept]
        new = {strategy for strategy, _ in gone} - {strategy for strategy, _ in kept}
        # Of strategies that are run the settings left out are enough.
        named = [
            setting if strategy not in new else f"{strategy} ({setting})" if setting else strategy
            for strategy, setting in gone
        ]
        less += [f"not run at this scale: {'; '.join(dict.fromkeys(named))}"] if named else []
        return replace(grid, notes=(*less, *grid.notes))

    def _trained(self, scale: Scale, data_dir: Path | None, protocol: Protocol) -> Grid:
        """The grid with the trainer of the protocol. Settings in words come from the cells themselves."""
        assert self.make is not None
        grid = self.make(scale, data_dir)
        made = []
        for dataset, cell in grid.cells:
            training, validation = under(protocol, cell.training, cell.validation)
            made.append((dataset, replace(cell, training=training, validation=validation)))
        return replace(grid, cells=tuple(made), settings={**grid.settings, "protocol": protocol, **told(tuple(made))})


def cells(bed: Bed, rounds: Rounds, variants: Iterable[Variant]) -> Iterator[tuple[str, Cell]]:
    """Seed by seed, so that an interrupted grid compares like with like."""
    lines = list(variants)
    for seed in range(rounds.seeds):
        for line in lines:
            if line.seeds is None or seed < line.seeds:
                cell = Cell(
                    line.strategy,
                    seed,
                    rounds.init,
                    rounds.batch,
                    rounds.rounds,
                    bed.model,
                    bed.training,
                    line.objective,
                    line.setting,
                    line.custom,
                    None,
                    bed.validation,
                    metric=bed.metric,
                )
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
    """Cells with the trainer of their bed; the preset puts them under a protocol."""
    reduced = ("data that ships with scikit-learn, to see that it runs: no result",) if scale == "smoke" else ()
    return Grid(title, question, tuple(made), {"scale": f"{scale}: {SCALES[scale]}"}, (*reduced, *notes), substitute)


def bed_or(bed: Bed, other: Bed, data_dir: Path | None) -> tuple[Bed, str | None]:
    """The bed, or another where its data are not here, with the words that say so."""
    # Where neither is here the error is to name the paper's data.
    if bed == other or is_here(bed, data_dir) or not is_here(other, data_dir):
        return bed, None
    return other, f"{other.dataset} with {other.model} stands in for {bed.dataset}: {absent(bed)}"


def absent(bed: Bed) -> str:
    return f"its files are not here (`ally datasets fetch {bed.dataset}` for the paper's data)"


def is_here(bed: Bed, data_dir: Path | None) -> bool:
    return state(DATASETS[bed.dataset], data_dir or default_data_dir()) != "absent"
