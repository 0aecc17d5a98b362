"""One campaign of a grid, and its records."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ally.checks import check_count
from ally.errors import InputError
from ally.experiment.protocol import protocol_of
from ally.experiment.trial import Copies, Trial
from ally.hygiene import Hygiene
from ally.learning.auto import AutoLearner
from ally.learning.auto_objective import AutoObjective, objective_of
from ally.learning.objectives import Objective
from ally.learning.training import Training
from ally.metrics import metric_for
from ally.strategies import CATALOGUE, Strategy


@dataclass(frozen=True)
class Cell:
    """Equal seeds give every strategy the same start, the same validation set and the same initial weights."""

    strategy: str
    seed: int
    init: int
    batch: int
    rounds: int
    model: Any = None
    training: Training = Training()
    objective: str | Objective | None = None
    setting: str = ""
    """How it differs from other cells of its strategy, in words."""
    custom: Strategy | None = None
    """Used instead of the catalogue's entry, under the name `strategy`."""
    candidates: int | None = None
    """Choose only among this many samples of the pool, drawn at random; None for all."""
    validation: int = 0
    """How many labels are bought at the start for early stopping; they are counted."""
    test: int | None = None
    """Measure on this many samples of the test set, the same for all; None for all of them."""
    copies: Copies | None = None
    metric: str | None = None
    """What is measured on the test set; None for accuracy or the root of the mean squared error."""
    asks_as: str | None = None
    """Instead of asking, take the batches that this strategy of the catalogue asks for with its own training."""
    hygiene: Hygiene | None = field(default=None, repr=False)
    """What a query sets aside; None: every free sample is a candidate."""

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("init", 1), ("batch", 1), ("rounds", 0), ("validation", 0)):
            check_count(name, getattr(self, name), least)

    @property
    def composition(self) -> Strategy:
        return self.custom or CATALOGUE[self.strategy]

    @property
    def trained_by(self) -> str | Objective:
        return self.composition.objective if self.objective is None else self.objective

    @property
    def chooses(self) -> bool:
        """Whether its learner or its objective is chosen by cross-validation: from the labels at the start, which all
        strategies share, and from its own each time they have grown by half, as in a campaign."""
        automatic = self.model is None or self.model == "auto" or isinstance(self.model, AutoLearner)
        return automatic or isinstance(objective_of(self.trained_by), AutoObjective)

    @property
    def protocol(self) -> str:
        """How long networks are trained, by name (see `ally.experiment.protocol`)."""
        return protocol_of(self.training, self.validation)

    @property
    def leader(self) -> Cell | None:
        """The campaign whose batches this one takes."""
        return (
            None
            if self.asks_as is None
            else replace(self, strategy=self.asks_as, custom=None, objective=None, asks_as=None, copies=None)
        )

    @property
    def labels(self) -> int:
        """Total number of labels bought."""
        return self.init + self.validation + self.batch * self.rounds

    def ensure_fits(self, trial: Trial) -> None:
        """Raises before anything runs if the campaign is impossible."""
        self.composition.ensure_task(trial.task, f"strategy {self.strategy!r}")
        if self.metric is not None:
            metric_for(self.metric, trial.task, bench=True)
        size = trial.size if self.copies is None else self.copies.times * min(trial.size, self.copies.of or trial.size)
        if self.labels > size:
            validation = f" + {self.validation} for validation" if self.validation else ""
            raise InputError(
                f"{self.init}{validation} + {self.rounds} x {self.batch} labels are more than the pool of {size} "
                f"({trial.name}); lower init, validation, rounds or batch"
            )
        if self.candidates is not None and self.batch * self.rounds > self.candidates:
            raise InputError(
                f"{self.rounds} x {self.batch} labels are more than the {self.candidates} candidates; raise "
                "candidates or lower rounds"
            )

    def identity(self, dataset: str) -> tuple[Any, ...]:
        """What identifies its records in ``results.csv``."""
        names = model_name(self.model), objective_name(self.trained_by)
        return (dataset, *names, self.setting, self.strategy, self.seed, self.batch, self.protocol)

    def key(self, dataset: str) -> str:
        """A file name: readable, and different for different settings. It leaves out the number of rounds, which may
        be raised later."""
        plain: tuple[Any, ...] = (replace(self, rounds=0, custom=None), self.composition, model_name(self.model))
        # Apart from the repr, so that what was run before there were these settings keeps its name.
        plain += () if self.hygiene is None else (self.hygiene,)
        plain += ("chooses again",) if self.chooses else ()
        settings = re.sub(r" at 0x[0-9a-f]+", "", repr((dataset, *plain)))
        parts = (dataset, self.strategy, self.setting, f"b{self.batch}", f"s{self.seed}")
        readable = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-") for part in parts if part)
        return f"{readable[-80:]}-{hashlib.sha256(settings.encode()).hexdigest()[:10]}"


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
    protocol: str = ""
    positive_duals: float | None = None
    """Share of the labelled samples with λ > 0; None without duals."""
    rank_quality: float | None = None
    """Rank correlation of predicted and true λ on held-out labelled samples; None where nothing was predicted."""
    learner: str = ""
    """What ``model="auto"`` chose; empty for a model by name."""


COLUMNS = [item.name for item in fields(Record)]


@dataclass(frozen=True)
class Round:
    """A record, and the rows asked about after it: enough to resume from there."""

    record: Record
    asked: tuple[int, ...] = ()


def model_name(model: Any) -> str:
    return model if isinstance(model, str) else "default" if model is None else repr(model)


def objective_name(objective: str | Objective) -> str:
    return objective if isinstance(objective, str) else repr(objective)
