"""The contract between a learner and all that is built on it: the loop, campaigns, the benchmark, scores, selections.

A `Learner` is a frozen value; its repr is its configuration. It is used in this order:

1. `supports` says, before anything is read or trained, why it cannot do what is asked of it, or None.
2. `prepared` may look at the pool once, without labels, for what must stay the same from round to round (the mean and
   scale of each column). It returns the learner to go on with; one that needs nothing returns itself.
3. `settled` may look at the labels and return the learner to go on with, for learners that choose among others. It is
   called for the first labels, and again when they have grown by half (`GROWTH`). Others return themselves.
4. `fit` trains from scratch and returns a `Fitted`. Equal examples, objective and streams give the same `Fitted`,
   to the last bit. What it was given is never changed.

A `Fitted` says what it has learned, of raw samples: it does itself what has to be done to them first. It has no side
effects and can be pickled, so that parts of a pool can be looked at in other processes. `view` computes in blocks of
`ally.sources.BLOCK` rows counted from its first row; runs that begin at multiples of it give the same bits as
one run over all of them.

`Fitted` need not be a network. Whatever a score reads beyond a `View` is asked for by a method: `sampled`, `dropped`.
Scores that read a network trained beside the model ask for a `FittedNetwork`.

`ally.testing.learner.check_learner` checks all of this for any learner, ours and yours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

import numpy as np
import torch

from ally.constrained import Slacks
from ally.errors import InputError, OneClassError
from ally.rng import Streams
from ally.sources import Source, as_source
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

if TYPE_CHECKING:
    from ally.learning.objectives import Objective
    from ally.learning.readouts import Readout
    from ally.learning.snapshot import View

GROWTH = 1.5
"""A learner is settled again when there are this many times the labels it was settled with."""


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
    """(n,) how much each counts, positive; None: all alike."""

    @classmethod
    def of(cls, X: Any, labels: Any, classes: Iterable[Any] | None = None) -> Examples:
        """All rows of an array, or of whatever else a source can be made of, with class numbers of `classes`, or with
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
        """How many numbers a learner predicts for a sample: one per class, or one. Raises where there is nothing to
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
    """Rows of a source that an objective may draw from; read batch by batch, never whole."""

    source: Source
    rows: IntArray


@dataclass(frozen=True)
class FitReport:
    """What happened during a fit. The dual fields are None for an objective without constraints."""

    samples: int
    epochs: int
    """Passes over the samples; for a learner that solves at once, how often it did."""
    kept_epoch: int
    """The epoch of the network."""
    train_loss: float
    """Mean loss of the samples trained on, or of held-out ones where a learner memorises those it is trained on."""
    validation_loss: float | None
    positive_duals: float | None
    """Share of samples with λ > 0 among those whose λ is known: the labelled ones, and the pool's where constraints
    range over it."""
    slacks: Slacks | None
    seconds: float = 0.0
    dual_epoch: int = 0
    """The epoch of the duals: that of the network, unless `Training.keep` says otherwise."""
    eps: float | None = None
    """ε of constraints over the pool."""
    notes: tuple[str, ...] = ()
    """What a user should know about the fit, in sentences."""


class How(TypedDict, total=False):
    """What `Learner.fit` takes by name, for learners that pass it on."""

    validation: Examples | None
    unlabelled: Unlabelled | None
    progress: Progress | None
    member: int


@runtime_checkable
class Fitted(Protocol):
    """A trained learner. Attributes are read only."""

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
        """λ by what it belongs to: ``"labelled"``, in the order of the examples, and ``"unlabelled"``, which belongs to
        `unlabelled_rows` and is NaN where it is not known. Empty for an objective without constraints."""
        ...

    @property
    def unlabelled_rows(self) -> IntArray | None: ...

    @property
    def held_out(self) -> tuple[torch.Tensor | None, torch.Tensor] | None:
        """Probabilities and predictions (as of a `View`) for the examples, in their order, by clones that were not
        trained on them. For a learner that knows by heart what it was trained on, and so says nothing of use about it;
        None for others."""
        ...

    @property
    def spreads(self) -> bool:
        """Whether `sampled` gives predictions that differ, as of a network with dropout or of the trees of a forest.
        Otherwise scores that ask for a spread are given an ensemble."""
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
        """What it says about a run of rows, ascending.

        `readouts` are given it and the other `members` of its ensemble; `seed` is theirs, and `start` is the place of
        the run in the whole pass.
        """
        ...

    def predict(self, source: Source) -> AnyArray:
        """Classes by name, or targets, (n,), of all rows."""
        ...

    def inputs(self, source: Source, rows: IntArray) -> Any:
        """One block of samples as the methods below take them: of a type of its own, the same for all members of an
        ensemble."""
        ...

    def outputs(self, x: Any) -> torch.Tensor:
        """(B, C) probabilities, or (B, 1) predictions in units of standardised targets, float64, of one block."""
        ...

    def sampled(self, x: Any, samples: int, seed: int) -> Sequence[torch.Tensor]:
        """`outputs` under at least two draws of θ, if it `spreads`. A draw is one predictor for all samples."""
        ...

    def dropped(self, x: Any, samples: int, rate: float, seed: int) -> Sequence[torch.Tensor]:
        """`outputs` of `samples` copies of the block, each of which lost a share `rate` of the units of its
        embedding."""
        ...

    def packed(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Plain values and tensors to rebuild it from; the value ``"kind"`` says by what (`trained.KINDS`). Raises a
        ModelError where it cannot be rebuilt."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A frozen description of how to learn."""

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        """Why it cannot be trained by an objective, or cannot give a strategy what it `needs` (`Strategy.needs`); None
        if it can."""
        ...

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> Learner:
        """Ready for a pool: with what one pass over `rows` tells about them."""
        ...

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> Learner:
        """The learner that these labels are best learned by."""
        ...

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        """(n, d) float32: where distances are measured while nothing is trained, or where a user asks for the
        inputs."""
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
        """Trained on `examples`. `validation` is used to stop early only, `unlabelled` by objectives that draw from it.

        `member` counts the learners of an ensemble. The first is the plain learner; the others must differ, by their
        streams or by training on a resample.
        """
        ...
