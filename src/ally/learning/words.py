"""A learner that reads the words of texts which an encoder has made into vectors.

A source of such vectors has the same texts as weights of words beside them, in its attribute `words`. What words tell
an encoder often leaves out: function words, names, spelling.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from ally.data import Source
from ally.errors import InputError
from ally.learning.learner import Examples, FitReport, Fitted, Learner
from ally.learning.objectives import Objective
from ally.learning.snapshot import View, predict_labels
from ally.rng import Streams
from ally.types import AnyArray, IntArray, Progress, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ally.learning.learner import How


def words_of(source: Source) -> Source:
    if source.words is None:
        raise InputError("the model reads the words of texts, and these samples have none; pass the texts themselves")
    return source.words


@dataclass(frozen=True)
class OfWords:
    """`learner` on the words of the samples."""

    learner: Learner

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        return self.learner.supports(objective, task, needs)

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> OfWords:
        return OfWords(self.learner.prepared(words_of(source), rows, chunk_size))

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> OfWords:
        return self

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        return self.learner.points(words_of(source), rows)

    def fit(self, examples: Examples, objective: Objective, streams: Streams, **how: Unpack[How]) -> FittedOfWords:
        for name in ("validation", "unlabelled"):
            given: Any = how.get(name)
            if given is not None:
                how[name] = replace(given, source=words_of(given.source))
        fit = self.learner.fit(replace(examples, source=words_of(examples.source)), objective, streams, **how)
        return FittedOfWords(fit, fit.report)


@dataclass(frozen=True, eq=False)
class FittedOfWords:
    """`fit` on the words of the samples."""

    fit: Fitted = field(repr=False)
    report: FitReport

    @property
    def task(self) -> Task:
        return self.fit.task

    @property
    def classes(self) -> tuple[Any, ...] | None:
        return self.fit.classes

    @property
    def duals(self) -> Mapping[str, torch.Tensor]:
        return self.fit.duals

    @property
    def unlabelled_rows(self) -> IntArray | None:
        return self.fit.unlabelled_rows

    @property
    def held_out(self) -> tuple[torch.Tensor | None, torch.Tensor] | None:
        return self.fit.held_out

    @property
    def spreads(self) -> bool:
        return self.fit.spreads

    def view(self, source: Source, rows: IntArray, *, members: Sequence[Any] = (), **how: Any) -> View:
        """Readouts see the fits on words."""
        return self.fit.view(words_of(source), rows, members=[one.fit for one in members], **how)

    def predict(self, source: Source) -> AnyArray:
        return predict_labels(self, source)

    def inputs(self, source: Source, rows: IntArray) -> Any:
        return self.fit.inputs(words_of(source), rows)

    def outputs(self, x: Any) -> torch.Tensor:
        return self.fit.outputs(x)

    def sampled(self, x: Any, samples: int, seed: int) -> Sequence[torch.Tensor]:
        return self.fit.sampled(x, samples, seed)

    def dropped(self, x: Any, samples: int, rate: float, seed: int) -> Sequence[torch.Tensor]:
        return self.fit.dropped(x, samples, rate, seed)

    def packed(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        facts, tensors = self.fit.packed()
        return {"kind": "words", "learners": [facts]}, {f"0.{name}": value for name, value in tensors.items()}
