"""`model="auto"`: the average of the best of a few candidate learners for the kind of samples, chosen by
cross-validation (`choice`)."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from ally.data import Source
from ally.errors import ModelError
from ally.execution.devices import resolve_device
from ally.learning.candidates import Candidate, slate_for
from ally.learning.choice import Chosen, KeptChoice, choose
from ally.learning.learner import GROWTH, Examples, Fitted, Learner
from ally.learning.objectives import ERM, Objective
from ally.learning.training import Training
from ally.rng import Streams
from ally.types import IntArray, Progress, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ally.learning.learner import How

BUDGET, IMAGES = 8.0, 60.0
"""Estimated seconds of one core that the choice may take; `IMAGES` for images."""


@dataclass(frozen=True)
class AutoLearner:
    """Chooses learners on the first labels, and again once they have grown by half. Those that are close to the best
    are averaged (`ally.learning.average`), unless the objective is one for a single model.

    Attributes:
        training: how the candidate networks are trained.
        budget: estimated seconds of one core that the choice may take; None is `BUDGET`, or `IMAGES` for images.
        slate: the candidates, simplest first; None for the default ones.
        without: names of default candidates that are not tried.
        before: an earlier choice, reused until the labels have grown by half.
        rival: the rank that other features of the same samples have reached. If the simplest candidate is far behind
            it, the others are not tried.
        chosen: the choice, once `settled`.
    """

    training: Training = Training()
    budget: float | None = None
    slate: tuple[Candidate, ...] | None = None
    without: tuple[str, ...] = ()
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
        slate = self.slate
        if slate is None:
            slate = tuple(one for one in slate_for(source, self.training) if one.name not in self.without)
        return replace(self, slate=tuple(_prepared(candidate, source, rows, chunk_size) for candidate in slate))

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> AutoLearner:
        """A copy with a learner chosen; the same labels are not compared twice."""
        if self.chosen is not None:
            return self
        return replace(self, chosen=self._choice(examples, objective, streams, progress))

    def _choice(self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None) -> Chosen:
        slate = [one for one in self._slate() if one.task in (None, examples.task)]
        slate = [one for one in slate if one.learner.supports(objective, examples.task) is None]
        if not slate:
            raise ModelError(
                f"no candidate model supports the objective {objective}; name a model, such as model='mlp'"
            )
        before, labels = self.before, len(examples)
        kept = None if before is None or labels >= GROWTH * before.labels else before.found_in(slate)
        if kept is not None:
            return kept
        if len(slate) == 1:
            return Chosen(slate[0], f"{slate[0].name}: the only candidate model for this objective", labels)
        usual = IMAGES if len(examples.source.shape) == 3 else BUDGET
        budget = usual if self.budget is None else self.budget
        average = isinstance(objective, ERM)
        chosen = choose(slate, examples, budget, streams, progress, rival=self.rival, average=average)
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
