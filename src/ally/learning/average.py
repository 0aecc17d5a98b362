"""Several learners as one: what they predict is averaged.

Where labels cannot tell which of a few learners is best, their average is nearly always better than any of them. The
first of them, the `lead`, stands for all where an average has no meaning: its embedding is that of the average, and
constraints, which belong to one model, are put on the lead alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from ally.data import Once, Source
from ally.learning.learner import Examples, FitReport, Fitted, Learner
from ally.learning.objectives import ERM, Objective
from ally.learning.snapshot import Seen, View, by_blocks, predict_labels
from ally.rng import Streams
from ally.types import AnyArray, IntArray, Progress, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ally.learning.learner import How
    from ally.learning.readouts import Readout


@dataclass(frozen=True)
class Average:
    """`learners` with their `weights`, which sum to 1; the lead first. An objective other than `erm` trains the lead
    alone."""

    learners: tuple[Learner, ...]
    weights: tuple[float, ...]

    @property
    def lead(self) -> Learner:
        return self.learners[0]

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        asked = self.learners if isinstance(objective, ERM) else (self.lead,)
        reasons = (learner.supports(objective, task, needs) for learner in asked)
        return next((reason for reason in reasons if reason is not None), None)

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> Average:
        return replace(self, learners=tuple(one.prepared(source, rows, chunk_size) for one in self.learners))

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> Average:
        return self

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        return self.lead.points(source, rows)

    def fit(self, examples: Examples, objective: Objective, streams: Streams, **how: Unpack[How]) -> Fitted:
        if not isinstance(objective, ERM):
            return self.lead.fit(examples, objective, streams, **how)
        fits = tuple(learner.fit(examples, objective, streams, **how) for learner in self.learners)
        notes = tuple(dict.fromkeys(note for fit in fits for note in fit.report.notes))
        seconds = sum(fit.report.seconds for fit in fits)
        return FittedAverage(fits, self.weights, replace(fits[0].report, notes=notes, seconds=seconds))


class AveragedBlock:
    """Rows of a source, in the form that each of several fits takes them."""

    def __init__(self, source: Source, rows: IntArray) -> None:
        self.source, self.rows = source, rows

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, fit: Fitted) -> Any:
        return fit.inputs(self.source, self.rows)


@dataclass(frozen=True, eq=False)
class FittedAverage:
    """Probabilities, or predictions, of `fits` in proportion to `weights`."""

    fits: tuple[Fitted, ...] = field(repr=False)
    weights: tuple[float, ...]
    report: FitReport

    @property
    def lead(self) -> Fitted:
        return self.fits[0]

    @property
    def task(self) -> Task:
        return self.lead.task

    @property
    def classes(self) -> tuple[Any, ...] | None:
        return self.lead.classes

    @property
    def duals(self) -> dict[str, torch.Tensor]:
        return {}

    @property
    def unlabelled_rows(self) -> None:
        return None

    @property
    def held_out(self) -> None:
        return None

    @property
    def spreads(self) -> bool:
        """Its learners disagree."""
        return True

    def view(
        self,
        source: Source,
        rows: IntArray,
        *,
        readouts: Sequence[Readout] = (),
        members: Sequence[Fitted] = (),
        seed: int = 0,
        start: int = 0,
    ) -> View:
        return by_blocks(
            self, Once(source), rows, self._look, readouts=readouts, members=members, seed=seed, start=start
        )

    def predict(self, source: Source) -> AnyArray:
        return predict_labels(self, source)

    def inputs(self, source: Source, rows: IntArray) -> AveragedBlock:
        return AveragedBlock(source, rows)

    def outputs(self, x: AveragedBlock) -> torch.Tensor:
        return self._mean([fit.outputs(x.of(fit)) for fit in self.fits])

    def sampled(self, x: AveragedBlock, samples: int, seed: int) -> Sequence[torch.Tensor]:
        """Each learner has a share of the draws by its weight: draws of its own if it spreads, else its prediction as
        often."""
        found: list[torch.Tensor] = []
        for fit, count in zip(self.fits, _shares(self.weights, samples), strict=True):
            given = fit.sampled(x.of(fit), max(count, 2), seed) if fit.spreads else [fit.outputs(x.of(fit))]
            found += [given[place % len(given)] for place in range(count)]
        return found

    def dropped(self, x: AveragedBlock, samples: int, rate: float, seed: int) -> Sequence[torch.Tensor]:
        """Each learner loses units of its own embedding."""
        found = [fit.dropped(x.of(fit), samples, rate, seed) for fit in self.fits]
        return [self._mean(one) for one in zip(*found, strict=True)]

    def packed(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        facts: list[dict[str, Any]] = []
        tensors: dict[str, torch.Tensor] = {}
        for number, fit in enumerate(self.fits):
            own, values = fit.packed()
            facts.append(own)
            tensors |= {f"{number}.{name}": value for name, value in values.items()}
        return {"kind": "average", "weights": list(self.weights), "learners": facts}, tensors

    def _look(self, x: AveragedBlock, rows: IntArray) -> Seen:
        seen = [fit.view(x.source, rows) for fit in self.fits]
        if self.task == "regression":
            return Seen(seen[0].embeddings, None, self._mean([one.predictions for one in seen]))
        p = self._mean([one.probabilities.double() for one in seen if one.probabilities is not None])
        return Seen(seen[0].embeddings, p.float(), p.argmax(1))

    def _mean(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.stack([weight * part for weight, part in zip(self.weights, parts, strict=True)]).sum(0)


def _shares(weights: Sequence[float], total: int) -> list[int]:
    """`total` things by weight, at least one each."""
    return [max(1, round(weight * total)) for weight in weights]
