"""One simulated campaign, through the same ask and tell that users call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from ally.errors import InputError
from ally.learning.objectives import Objective
from ally.learning.training import Training
from ally.loop import Loop
from ally.pool import Oracle
from ally.rng import Streams
from ally.strategies import CATALOGUE, Strategy
from ally.types import AnyArray, Task


@dataclass(frozen=True)
class Trial:
    """Data with hidden labels: a pool to ask about and a test set to measure on."""

    name: str
    task: Task
    pool: AnyArray
    pool_labels: AnyArray = field(repr=False)
    test: AnyArray = field(repr=False)
    test_labels: AnyArray = field(repr=False)

    @property
    def classes(self) -> list[Any] | None:
        """All classes of the data, known to every strategy from the start."""
        if self.task == "regression":
            return None
        return list(np.union1d(self.pool_labels, self.test_labels).tolist())

    @property
    def metric(self) -> Literal["accuracy", "rmse"]:
        return "accuracy" if self.task == "classification" else "rmse"

    def measure(self, predicted: AnyArray) -> float:
        if self.task == "classification":
            return float(np.mean(predicted == self.test_labels))
        return float(np.sqrt(np.mean(np.square(predicted - self.test_labels))))


@dataclass(frozen=True)
class Cell:
    """One campaign of a grid. Equal seeds give every strategy the same start and the same initial weights."""

    strategy: str
    seed: int
    init: int
    batch: int
    rounds: int
    model: Any = None
    training: Training = Training()
    objective: str | Objective | None = None
    setting: str = ""
    custom: Strategy | None = None
    """Used instead of the catalogue's entry, under the name `strategy`."""
    candidates: int | None = None
    """Ask only about this many samples of the pool, drawn at random; None for all."""


@dataclass(frozen=True)
class Record:
    """One line of ``results.csv``. `labels` counts every label bought, validation included."""

    dataset: str
    model: str
    objective: str
    setting: str
    strategy: str
    seed: int
    batch: int
    round: int
    labels: int
    validation_labels: int
    metric: str
    value: float
    train_seconds: float
    query_seconds: float


COLUMNS = [item.name for item in fields(Record)]


def simulate(trial: Trial, cell: Cell) -> Iterator[Record]:
    """Yields a record after every training: `rounds` batches after the initial random one, so rounds + 1 records."""
    if cell.init + cell.batch * cell.rounds > len(trial.pool):
        raise InputError(
            f"{cell.init} + {cell.rounds} x {cell.batch} labels are more than the pool of {len(trial.pool)}; lower rounds or batch"
        )
    strategy = cell.custom or CATALOGUE[cell.strategy]
    objective = strategy.objective if cell.objective is None else cell.objective
    streams = Streams(cell.seed)
    oracle = Oracle(trial.pool_labels)
    order = streams.numpy(f"start {trial.name}").permutation(len(trial.pool))
    start = np.sort(order[: cell.init])
    labels = np.full(len(trial.pool), None, dtype=object)
    for row, label in oracle.answer(start.tolist()).items():
        labels[row] = label
    loop = Loop(
        trial.pool,
        labels,
        strategy=strategy,
        objective=objective,
        model=cell.model,
        task=trial.task,
        classes=trial.classes,
        candidates=None if cell.candidates is None else order[cell.init :][: cell.candidates],
        random_state=streams,
        training=cell.training,
    )
    for number in range(cell.rounds + 1):
        began = time.perf_counter()
        loop.fit()
        trained = time.perf_counter() - began
        value = trial.measure(loop.predict(trial.test))
        bought, asked = oracle.bought, 0.0
        if number < cell.rounds:
            began = time.perf_counter()
            query = loop.ask(cell.batch)
            asked = time.perf_counter() - began
            loop.tell(query.id, oracle.answer(query.ids.tolist()))
        yield Record(
            dataset=trial.name,
            model=cell.model if isinstance(cell.model, str) else "default" if cell.model is None else repr(cell.model),
            objective=objective if isinstance(objective, str) else repr(objective),
            setting=cell.setting,
            strategy=cell.strategy,
            seed=cell.seed,
            batch=cell.batch,
            round=number,
            labels=bought,
            validation_labels=0,
            metric=trial.metric,
            value=value,
            train_seconds=trained,
            query_seconds=asked,
        )
