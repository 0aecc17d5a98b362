"""`model="auto"`: the best of a few candidate learners for the kind of samples, chosen by cross-validation.

All candidates are measured on the same held-out labels: five folds each, then five more for those within `CLOSE` of
the best. The lowest error wins; within `TIE` of it, the simpler candidate (the one listed earlier). Nothing depends on
the clock: the cost of a candidate is estimated from the size of the problem, so equal labels and seeds give equal
choices. A candidate that would cost too much is measured on fewer folds or left out, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from ally.errors import AllyError, ModelError
from ally.execution.devices import resolve_device
from ally.learning.candidates import Candidate, Size, slate_for
from ally.learning.learner import GROWTH, Examples, Fitted, Learner, Unlabelled
from ally.learning.objectives import Objective
from ally.learning.splits import Splits, repeated_splits
from ally.learning.training import Training
from ally.rng import Streams
from ally.sources import Source
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ally.learning.learner import How

FEWEST = 10
"""With fewer labels, the first candidate is used without measuring."""
FOLDS, ROUNDS = 5, 3
CLOSE, TIE = 1.15, 1.01
BUDGET, IMAGES = 8.0, 60.0
"""Estimated seconds of one core that the choice may take; `IMAGES` for images."""


class Measured(NamedTuple):
    """A candidate's cross-validated error: root mean squared error, or the share of wrong labels. `rank` is what
    candidates are compared by: for numbers the mean absolute error is added, so that a few samples far off do not
    decide; for classes half the Brier score, which separates candidates that few labels cannot."""

    name: str
    error: float
    rank: float


class Chosen(NamedTuple):
    """The chosen candidate, and why."""

    candidate: Candidate
    note: str
    labels: int
    """How many it was chosen by."""
    measured: tuple[Measured, ...] = ()

    @property
    def record(self) -> KeptChoice:
        return KeptChoice(self.candidate.name, self.labels, self.note)


class KeptChoice(NamedTuple):
    """A choice in plain values, to be kept until labels have grown by half."""

    name: str
    labels: int
    note: str


@dataclass(frozen=True)
class AutoLearner:
    """Chooses a learner on the first labels, and again once they have grown by half.

    Attributes:
        training: how the candidate networks are trained.
        budget: estimated seconds of one core that the choice may take; None is `BUDGET`, or `IMAGES` for images.
        slate: the candidates, simplest first; None for the default ones.
        before: an earlier choice, reused until the labels have grown by half.
        rival: the rank that other features of the same samples have reached. If the simplest candidate is far behind
            it, the others are not tried.
        chosen: the choice, once `settled`.
    """

    training: Training = Training()
    budget: float | None = None
    slate: tuple[Candidate, ...] | None = None
    before: KeptChoice | None = None
    rival: float = math.inf
    chosen: Chosen | None = None

    def __post_init__(self) -> None:
        resolve_device(self.training.device)

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        if self.slate is None:
            return None
        among = self.slate if self.chosen is None else (self.chosen.candidate,)
        reasons = [candidate.learner.supports(objective, task, needs) for candidate in among]
        return None if None in reasons else next(reason for reason in reasons if reason is not None)

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> AutoLearner:
        if self.chosen is not None:
            ready = _prepared(self.chosen.candidate, source, rows, chunk_size)
            return replace(self, chosen=self.chosen._replace(candidate=ready))
        slate = slate_for(source, self.training) if self.slate is None else self.slate
        return replace(self, slate=tuple(_prepared(candidate, source, rows, chunk_size) for candidate in slate))

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> AutoLearner:
        """A copy with a learner chosen; the same labels are not compared twice."""
        if self.chosen is not None:
            return self
        return replace(self, chosen=self._choice(examples, objective, streams, progress))

    def _choice(self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None) -> Chosen:
        slate = [one for one in self._slate() if one.learner.supports(objective, examples.task) is None]
        if not slate:
            raise ModelError(
                f"no candidate model supports the objective {objective}; name a model, such as model='mlp'"
            )
        before, labels = self.before, len(examples)
        if before is not None and labels < GROWTH * before.labels:
            for candidate in slate:
                if candidate.name == before.name:
                    return Chosen(candidate, before.note, before.labels)
        if len(slate) == 1:
            return Chosen(slate[0], f"{slate[0].name}: the only candidate model for this objective", labels)
        usual = IMAGES if len(examples.source.shape) == 3 else BUDGET
        budget = usual if self.budget is None else self.budget
        chosen = choose(slate, examples, budget, streams, progress, rival=self.rival)
        if chosen is None:
            return Chosen(slate[0], f"{slate[0].name}: too few labels to choose a model ({labels})", labels)
        return chosen

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        return self._slate()[0].learner.points(source, rows)

    def fit(self, examples: Examples, objective: Objective, streams: Streams, **how: Unpack[How]) -> Fitted:
        ready = self.prepared(examples.source, examples.rows) if self.slate is None else self
        chosen = ready.settled(examples, objective, streams.child("learner"), how.get("progress")).chosen
        assert chosen is not None
        fitted: Any = chosen.candidate.learner.fit(examples, objective, streams, **how)
        report = replace(fitted.report, notes=(chosen.note, *fitted.report.notes))
        told: Fitted = replace(fitted, report=report)
        return told

    def _slate(self) -> tuple[Candidate, ...]:
        if self.slate is None:
            raise ModelError("a learner has to be chosen for a pool; call prepared() first")
        return self.slate


def chosen_by(learner: Learner) -> Chosen | None:
    """What a learner that chooses among others has chosen; None for any other."""
    return learner.chosen if isinstance(learner, AutoLearner) else None


def chosen_name(learner: Learner) -> str:
    """ "" if it is none that chooses."""
    chosen = chosen_by(learner)
    return "" if chosen is None else chosen.candidate.name


def _prepared(candidate: Candidate, source: Source, rows: IntArray, chunk_size: int | None) -> Candidate:
    return replace(candidate, learner=candidate.learner.prepared(source, rows, chunk_size))


def _splits(examples: Examples, streams: Streams) -> Splits:
    classes = examples.task == "classification"
    return repeated_splits(examples.labels, FOLDS, ROUNDS, streams.numpy("choice"), classes=classes)


def choose(
    slate: Sequence[Candidate],
    examples: Examples,
    budget: float,
    streams: Streams,
    progress: Progress | None = None,
    *,
    rival: float = math.inf,
    unlabelled: Unlabelled | None = None,
) -> Chosen | None:
    """Chooses by cross-validation; `rival` as in `AutoLearner`, `unlabelled` for objectives that draw from it. None if
    there are too few labels."""
    splits = _splits(examples, streams)
    if len(examples) < FEWEST or not splits:
        return None
    size = Size(len(examples), math.prod(examples.source.shape), examples.outputs)
    left, notes, folds = budget, [], {}
    for place, candidate in enumerate(slate):
        # The simplest is always measured; the others on as many folds as fit into the remaining budget.
        share = left / (len(slate) - place)
        affordable = int(share / candidate.seconds(size))
        folds[candidate.name] = FOLDS if place == 0 else min(FOLDS, affordable)
        left -= folds[candidate.name] * candidate.seconds(size)
        if folds[candidate.name] < 2:
            notes.append(f"{candidate.name} was left out: it would take too long")
    race = _Race(examples, splits, streams, progress, sum(folds.values()), unlabelled)
    tried = [candidate for candidate in slate if folds[candidate.name] >= 2 or candidate is slate[0]]
    for candidate in tried:
        race.run(candidate, range(folds[candidate.name]))
        if race.measured[0].rank > CLOSE * rival:
            return race.winner([candidate], notes)
    for number in range(1, ROUNDS):
        ranks = {one.name: one.rank for one in race.measured}
        close = [candidate for candidate in tried if ranks[candidate.name] <= CLOSE * min(ranks.values())]
        cost = FOLDS * sum(candidate.seconds(size) for candidate in close)
        if len(close) < 2 or cost > left or any(folds[candidate.name] < FOLDS for candidate in close):
            break
        left -= cost
        for candidate in close:
            race.run(candidate, range(number * FOLDS, min((number + 1) * FOLDS, len(splits))))
    return race.winner(tried, notes)


class _Race:
    """Errors of candidates on the held-out labels of the splits run so far."""

    def __init__(
        self,
        examples: Examples,
        splits: Splits,
        streams: Streams,
        progress: Progress | None,
        total: int,
        unlabelled: Unlabelled | None = None,
    ) -> None:
        self.unlabelled = unlabelled
        self.examples = examples
        self.splits = splits
        self.streams = streams
        self.progress = progress
        self.total, self.done = total, 0
        self.losses: dict[str, list[FloatArray]] = {}
        self.failed: list[str] = []

    def run(self, candidate: Candidate, numbers: range) -> None:
        for number in numbers:
            train, test = (np.sort(part) for part in self.splits[number])
            try:
                fitted = candidate.learner.fit(
                    self.examples.at(train),
                    candidate.objective,
                    self.streams.child(f"split {number}"),
                    unlabelled=self.unlabelled,
                )
                seen = fitted.view(self.examples.source, self.examples.rows[test])
                losses = _losses(seen.probabilities, seen.predictions, self.examples.labels[test])
            except AllyError as error:
                self.failed.append(f"{candidate.name} was left out: {error}")
                self.losses[candidate.name] = [np.full((1, 2), np.inf)]
                return
            self.losses.setdefault(candidate.name, []).append(losses)
            self.done += 1
            if self.progress is not None:
                self.progress("choose a learner", min(self.done, self.total), self.total)

    @property
    def measured(self) -> list[Measured]:
        """Best first. A candidate measured on fewer folds is compared with the simplest on those folds only."""
        found = []
        simplest = next(iter(self.losses.values()))
        for name, parts in self.losses.items():
            means = np.concatenate(parts).mean(axis=0)
            if len(parts) < len(simplest) and np.isfinite(means).all():
                same = np.concatenate(simplest[: len(parts)]).mean(axis=0)
                means = np.maximum(means + np.concatenate(simplest).mean(axis=0) - same, 0.0)
            error, rank = means.tolist()
            if self.examples.task == "regression":
                error = math.sqrt(error)
                rank += error
            found.append(Measured(name, error, rank))
        return sorted(found, key=lambda one: one.rank)

    def winner(self, tried: Sequence[Candidate], notes: Sequence[str]) -> Chosen:
        measured = self.measured
        if not math.isfinite(measured[0].rank):
            raise ModelError(f"no learner could be trained on these labels ({self.failed[0]}); name a model")
        level = {one.name for one in measured if one.rank <= TIE * measured[0].rank}
        chosen = next(candidate for candidate in tried if candidate.name in level)
        own = next(one for one in measured if one.name == chosen.name)
        rest = [one for one in measured if one is not own and math.isfinite(one.rank)]
        note = f"{chosen.name} chosen by cross-validation: {self._said(own)}"
        if rest:
            note += f"; next {rest[0].name} {self._said(rest[0], short=True)}"
        said = [*notes, *self.failed]
        note = f"{note} ({'; '.join(said)})" if said else note
        return Chosen(chosen, note, len(self.examples), tuple(measured))

    def _said(self, one: Measured, short: bool = False) -> str:
        if self.examples.task == "classification":
            return f"{one.error:.1%}" if short else f"{one.error:.1%} wrong"
        return f"{one.error:.3g}" if short else f"rmse {one.error:.3g}"


def _losses(probabilities: torch.Tensor | None, predictions: torch.Tensor, labels: AnyArray) -> FloatArray:
    """(m, 2): squared and absolute errors; or wrong or not, and the value to compare by."""
    predicted = predictions.double().numpy()
    if predictions.is_floating_point():
        return np.column_stack([np.square(predicted - labels), np.abs(predicted - labels)])
    wrong = (predicted != labels).astype(np.float64)
    if probabilities is None:
        return np.column_stack([wrong, 2 * wrong])
    p = probabilities.double().numpy()
    truth = np.eye(p.shape[1])[labels.astype(np.int64)]
    return np.column_stack([wrong, wrong + 0.5 * np.square(p - truth).sum(axis=1)])
