"""The contract between a learner and everything built on it: the loop, campaigns, benchmarks, scores, selections.

A `Learner` is a frozen value; its repr is its configuration. It is used in this order:

1. `supports` says why the learner cannot do the job, or returns None. It is called before anything is read or trained.
2. `prepared` may read the pool once, without labels, for what must stay the same from round to round (the mean and
   scale of each column). It returns the learner to use from then on; a learner that needs nothing returns itself.
3. `settled` may look at the labels and return the learner to use from then on. It is for learners that choose among
   others; the rest return themselves. It is called for the first labels, and again when they have grown by half
   (`GROWTH`).
4. `fit` trains from scratch and returns a `Fitted`. Equal examples, objective and streams give the same `Fitted`, bit
   for bit. `fit` never changes its arguments.

A `Fitted` predicts from raw samples; it does its own preprocessing. It has no side effects and can be pickled, so that
other processes can work on parts of a pool. `view` computes in blocks of `ally.data.BLOCK` rows, counted from its
first row; runs that begin at multiples of it give the same bits as one run over all of them.

A `Fitted` need not be a network. Scores that need more than a `View` call a method: `sampled`, `dropped`. Scores that
read a network trained alongside the model ask for a `FittedNetwork`.

`ally.testing.learner.check_learner` checks all of this for any learner, ours and yours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

import numpy as np
import torch

from ally.constrained import Slacks
from ally.data import Source, as_source
from ally.errors import InputError, OneClassError
from ally.rng import Streams
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

if TYPE_CHECKING:
    from ally.learning.objectives import Objective
    from ally.learning.readouts import Readout
    from ally.learning.snapshot import View

GROWTH = 1.5
"""A learner is settled again once there are this many times as many labels as when it was settled."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled samples: rows of a source, and their `labels` (n,) as class numbers or targets."""

    source: Source = field(repr=False)
    rows: IntArray = field(repr=False)
    labels: FloatArray = field(repr=False)
    task: Task
    classes: tuple[Any, ...] | None = None
    """Names of the class numbers; None for regression. The labels need not show every class."""
    weights: FloatArray | None = field(default=None, repr=False)
    """(n,) positive sample weights; None: all equal."""

    @classmethod
    def of(cls, X: Any, labels: Any, classes: Iterable[Any] | None = None) -> Examples:
        """All rows of an array, or of anything else that can be a source, with class numbers of `classes` or with
        targets."""
        source, numbers = as_source(X), np.asarray(labels)
        if classes is None:
            return cls(source, np.arange(len(source)), numbers, "regression")
        return cls(source, np.arange(len(source)), numbers, "classification", tuple(classes))

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, places: AnyArray) -> Examples:
        """Some of them, by place or by mask (n,)."""
        weights = None if self.weights is None else self.weights[places]
        return Examples(self.source, self.rows[places], self.labels[places], self.task, self.classes, weights)

    @property
    def outputs(self) -> int:
        """How many numbers a learner predicts for a sample: one per class, or one. Raises if there is nothing to
        learn."""
        if not len(self):
            raise InputError("there are 0 labelled samples to train on; label some first")
        if self.classes is None:
            return 1
        if len(self.classes) < 2:
            only = self.classes[0]
            raise OneClassError(
                f"the labels hold one class only: all {len(self)} are {only!r}, and a classifier needs at least two "
                f"classes; declare them with classes=[{only!r}, ...] or label another class first"
            )
        return len(self.classes)


@dataclass(frozen=True)
class Unlabelled:
    """Rows of a source that an objective may draw from, read batch by batch, never all at once."""

    source: Source
    rows: IntArray


@dataclass(frozen=True)
class FitReport:
    """What happened during a fit. The dual fields are None for an objective without constraints."""

    samples: int
    epochs: int
    """Passes over the samples; for a learner with a direct solver, how often it was solved."""
    kept_epoch: int
    """The epoch that the network is from."""
    train_loss: float
    """Mean loss on the training samples, or on held-out ones if the learner memorises its training samples."""
    validation_loss: float | None
    positive_duals: float | None
    """Share of samples with λ > 0 among those whose λ is known: the labelled samples, and the pool if constraints cover
    it."""
    slacks: Slacks | None
    seconds: float = 0.0
    dual_epoch: int = 0
    """The epoch that the duals are from: that of the network, unless `Training.keep` says otherwise."""
    eps: float | None = None
    """ε of constraints over the pool."""
    capped_duals: float | None = None
    """Share of the labelled samples, or of all that constraints over the pool cover, whose λ is at its upper bound."""
    dual_residual: float | None = None
    """How far λ is from optimal: the largest distance of λ from clip(λ + s, 0, cap), with s the slack; together with
    what is left of the gradient where parameters and duals are solved for together. 0 means that no dual would move."""
    notes: tuple[str, ...] = ()
    """Sentences that tell the user about the fit."""


class How(TypedDict, total=False):
    """The keyword arguments of `Learner.fit`, for learners that pass them on."""

    validation: Examples | None
    unlabelled: Unlabelled | None
    progress: Progress | None
    member: int


@runtime_checkable
class Fitted(Protocol):
    """A trained learner. Its attributes are read-only."""

    @property
    def task(self) -> Task: ...

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Names of the columns of `View.probabilities`; None for regression."""
        ...

    @property
    def report(self) -> FitReport: ...

    @property
    def duals(self) -> Mapping[str, torch.Tensor]:
        """λ by group: ``"labelled"``, in the order of the examples, and ``"unlabelled"``, in the order of
        `unlabelled_rows`, NaN where unknown. Empty for an objective without constraints."""
        ...

    @property
    def unlabelled_rows(self) -> IntArray | None: ...

    @property
    def held_out(self) -> tuple[torch.Tensor | None, torch.Tensor] | None:
        """Probabilities and predictions (as in a `View`) for the examples, in their order, from clones that were not
        trained on them. It is for learners that memorise their training samples, whose own predictions for those are of
        no use; None for others."""
        ...

    @property
    def spreads(self) -> bool:
        """Whether `sampled` gives predictions that differ, as for a network with dropout or the trees of a forest. If
        not, scores that need a spread get an ensemble."""
        ...

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
        """The view of a run of ascending rows.

        `readouts` get this fit and the other `members` of its ensemble, and `seed`; `start` is the position of the run
        in the whole pass.
        """
        ...

    def predict(self, source: Source) -> AnyArray:
        """The predicted class names or targets of all rows, (n,)."""
        ...

    def inputs(self, source: Source, rows: IntArray) -> Any:
        """One block of samples in the form the methods below take. The type is the learner's own, the same for all
        members of an ensemble."""
        ...

    def outputs(self, x: Any) -> torch.Tensor:
        """(B, C) probabilities, or (B, 1) predictions in units of standardised targets, float64, for one block."""
        ...

    def sampled(self, x: Any, samples: int, seed: int) -> Sequence[torch.Tensor]:
        """`outputs` under at least two draws of θ, if it `spreads`. Each draw is one predictor, the same for all
        samples."""
        ...

    def dropped(self, x: Any, samples: int, rate: float, seed: int) -> Sequence[torch.Tensor]:
        """`outputs` of `samples` copies of the block, each with a share `rate` of its embedding's units dropped."""
        ...

    def packed(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Plain values and tensors to rebuild it from; the value ``"kind"`` names the builder (`trained.KINDS`). Raises
        a ModelError if it cannot be rebuilt."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A frozen description of how to learn."""

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        """Why it cannot be trained with the objective, or cannot give a strategy what it `needs` (`Strategy.needs`);
        None if it can."""
        ...

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> Learner:
        """The learner made ready for a pool by one pass over `rows`."""
        ...

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> Learner:
        """The best learner for these labels."""
        ...

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        """(n, d) float32: the space for distances before anything is trained, or when the user asks for the inputs."""
        ...

    def fit(
        self,
        examples: Examples,
        objective: Objective,
        streams: Streams,
        *,
        validation: Examples | None = None,
        unlabelled: Unlabelled | None = None,
        progress: Progress | None = None,
        member: int = 0,
    ) -> Fitted:
        """Trains on `examples`. `validation` is only for early stopping; `unlabelled` is for objectives that draw from
        it.

        `member` is the number within an ensemble. The first is the plain learner; the others must differ, by their
        streams or by training on a resample.
        """
        ...
