"""A learner and its pool: train on the labelled rows, then view the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch

from ally.data import LabelCode, Pool, Source, State, Vectors, as_source, carried
from ally.errors import InputError, ModelError
from ally.execution.engine import Engine, LocalEngine
from ally.execution.memory import Scratch
from ally.learning.auto_objective import AutoObjective
from ally.learning.calibration import folds
from ally.learning.first_pass import FirstPass, Mark
from ally.learning.fitted_network import FittedNetwork
from ally.learning.held import Look, spread
from ally.learning.learner import GROWTH, Examples, Fitted, Learner, Unlabelled
from ally.learning.objectives import ERM, Objective
from ally.learning.readouts import Readout
from ally.learning.snapshot import HeldOut, Snapshot, View, view
from ally.learning.space import Space, fixed_points
from ally.rng import Streams
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

WIDEST = 2048
"""Samples of more numbers are not compared by their inputs (`PoolLearner.compares_inputs`)."""
FOLDS = 2
"""One training per fold. On digits, five folds came hardly closer to the temperature that fits the unlabelled
samples."""


@dataclass
class PoolLearner:
    """What stays the same from round to round: the prepared learner, and where distances are measured."""

    source: Source
    rows: IntArray
    """Rows the learner may look at once before training; they never change."""
    learner: Learner
    objective: Objective
    streams: Streams
    validation: tuple[Any, Any] | None = None
    chunk_size: int | None = None
    progress: Progress | None = None
    geometry: Vectors | Literal["inputs"] | None = None
    """Where distances are measured instead of the learner's embeddings: fixed vectors, or the inputs it sees."""
    compares_inputs: bool = False
    """Whether the inputs replace an embedding that a network learned, unless samples are wide (`WIDEST`)."""
    engine: Engine = LocalEngine()
    """The engine that computes the view of the candidates."""
    mark: Mark | None = None
    """What else to compute when samples are first read."""
    _marks: AnyArray | None = field(default=None, init=False)
    _prepared: Learner | None = field(default=None, init=False)
    _settled: Learner | None = field(default=None, init=False)
    _settled_with: int = field(default=0, init=False)
    """The number of labels it was settled with."""
    _trained_by: Objective = field(default=ERM(), init=False)
    _notes: tuple[str, ...] = field(default=(), init=False)
    """Notes about the choice of the objective."""

    def __post_init__(self) -> None:
        self._trained_by = self.objective.among[0] if isinstance(self.objective, AutoObjective) else self.objective

    def ensure_supports(self, task: Task, needs: Collection[str]) -> None:
        """Check that the learner supports the objective and provides what the strategy needs."""
        reason = self.learner.supports(self._trained_by, task, needs)
        if reason is not None:
            raise ModelError(reason)

    @property
    def prepared(self) -> Learner:
        """The learner after its pass over the pool, which is made when first needed."""
        if self._prepared is None:
            first = FirstPass(
                self.source, self.rows, self.chunk_size, self.engine, lambda: self._sent, self.mark, self.progress
            )
            self._prepared = self.learner.prepared(first, self.rows, self.chunk_size)
            self._marks = first.marks
        return self._prepared

    def marks(self) -> AnyArray | None:
        """The marks of `rows` from the pass that prepared the learner; None if that pass did not cover them all."""
        assert self.prepared is not None
        return self._marks

    def settled(self, pool: Pool, code: LabelCode) -> Learner:
        """The learner for the current labels; kept until they have grown by half."""
        labels = len(pool.rows(State.LABELLED))
        if self._settled is None or labels >= GROWTH * self._settled_with:
            examples = self._examples(pool, code, pool.rows(State.LABELLED))
            self._settled = self.prepared.settled(
                examples, self._trained_by, self.streams.child("learner"), self.progress
            )
            self._settled_with = labels
            self._choose_objective(self._settled, examples, pool)
        return self._settled

    def trained_by(self, pool: Pool, code: LabelCode) -> Objective:
        """The objective in use; for ``"auto"``, the one chosen for the current labels."""
        self.settled(pool, code)
        return self._trained_by

    def _choose_objective(self, learner: Learner, examples: Examples, pool: Pool) -> None:
        if not isinstance(self.objective, AutoObjective):
            return
        unlabelled = Unlabelled(self.source, pool.rows(State.FREE))
        streams = self.streams.child("objective")
        chosen = self.objective.choice(learner, examples, unlabelled, streams, self.progress)
        if chosen is not None:
            self._trained_by, self._notes = chosen.candidate.objective, (f"objective: {chosen.note}",)

    def fit(self, pool: Pool, code: LabelCode, member: int = 0) -> Fitted:
        """Trained from scratch on every labelled row; members of an ensemble differ in their random streams."""
        streams = self.streams if member == 0 else self.streams.child(f"member {member}")
        return self._fit(pool, code, pool.rows(State.LABELLED), streams, member)

    def _fit(self, pool: Pool, code: LabelCode, rows: IntArray, streams: Streams, member: int = 0) -> Fitted:
        # Choosing a learner takes long: what is wrong with the validation samples is told before.
        validation = self._validation(code)
        learner = self.settled(pool, code)
        fitted: Any = learner.fit(
            self._examples(pool, code, rows),
            self._trained_by,
            streams,
            validation=validation,
            unlabelled=Unlabelled(self.source, pool.rows(State.FREE)),
            progress=self.progress,
            member=member,
        )
        if self._notes:
            fitted = replace(fitted, report=replace(fitted.report, notes=(*fitted.report.notes, *self._notes)))
        told: Fitted = fitted
        return told

    def _examples(self, pool: Pool, code: LabelCode, rows: IntArray) -> Examples:
        return Examples(self.source, rows, pool.labels(rows), code.task, _names(code))

    def held_out(self, fit: Fitted, pool: Pool, code: LabelCode) -> HeldOut | None:
        """Predictions for labelled samples by learners that were not trained on them.

        These are the fit's predictions for the validation samples. Without any, each of `FOLDS` folds of the labelled
        samples is predicted by a learner trained on the others. None for a single label, and for regression.
        """
        validation, rows = self._validation(code), pool.rows(State.LABELLED)
        if code.classes is None or (validation is None and len(rows) < 2):
            return None
        if self.validation is not None and validation is not None:
            return _told(self.predict(fit, self.validation[0]), validation.labels)
        fold = folds(pool.labels(rows), FOLDS, self.streams.numpy("folds"))
        parts = []
        for number in range(FOLDS):
            trained = self._fit(pool, code, rows[fold != number], self.streams.child(f"fold {number}"))
            with Scratch() as scratch:
                seen = view(trained, self.source, rows[fold == number], scratch, chunk_size=self.chunk_size)
            parts.append(_told(seen, pool.labels(seen.rows)))
        return HeldOut(torch.cat([part.probabilities for part in parts]), torch.cat([part.labels for part in parts]))

    def snapshot(
        self,
        fit: Fitted,
        pool: Pool,
        rows: IntArray,
        scratch: Scratch,
        *,
        members: Sequence[Fitted] = (),
        readouts: Sequence[Readout] = (),
        seed: int = 0,
    ) -> Snapshot:
        """The view, by the fit (and the other members of its ensemble), of the candidates `rows`, ascending, and of the
        labelled rows."""
        source, chunk_size = self.source, self.chunk_size
        geometry = self._geometry_for(fit)
        space = None if geometry is None else self._space(source)
        labelled = view(fit, source, pool.rows(State.LABELLED), scratch, space=space, chunk_size=chunk_size)
        if fit.held_out is not None:
            probabilities, predictions = fit.held_out
            labelled = replace(labelled, probabilities=probabilities, predictions=predictions)
        candidates = self._candidates(fit, rows, scratch, members, readouts, seed)
        labels = torch.from_numpy(pool.labels(labelled.rows))
        return Snapshot(
            fit.task,
            candidates,
            labelled,
            labels,
            fit.duals.get("labelled"),
            _candidate_duals(fit, rows),
            learned=geometry is None and _is_network(fit),
        )

    def _geometry_for(self, fit: Fitted) -> Vectors | Literal["inputs"] | None:
        """Where distances between samples are measured once there is a fit; None for its embeddings."""
        if self.geometry is None and self.compares_inputs and _is_network(fit):
            return "inputs" if self.source.numeric and math.prod(self.source.shape) <= WIDEST else None
        return self.geometry

    def _candidates(
        self,
        fit: Fitted | None,
        rows: IntArray,
        scratch: Scratch,
        members: Sequence[Fitted] = (),
        readouts: Sequence[Readout] = (),
        seed: int = 0,
    ) -> View:
        """The fit's view of the candidates; without a fit, the points that stand in for embeddings. It is kept here, or
        by the workers of an engine."""
        if self.engine.holds and len(rows):
            space = self._space(self._sent) if fit is None or self._geometry_for(fit) is not None else None
            share = -(-scratch.budget // self.engine.parts(len(rows)))
            look = Look(self._sent, fit, space, members, readouts, seed, self.chunk_size, share)
            return spread(self.engine, look, rows, scratch, self.progress)
        if fit is None:
            return View(rows, self._fixed(rows, scratch), None, torch.empty(0))
        return view(
            fit,
            self.source,
            rows,
            scratch,
            members=members,
            readouts=readouts,
            seed=seed,
            space=None if self._geometry_for(fit) is None else self._space(self.source),
            chunk_size=self.chunk_size,
            progress=self.progress,
        )

    def untrained(self, pool: Pool, code: LabelCode, rows: IntArray, scratch: Scratch) -> Snapshot:
        """The given vectors, or the inputs themselves, as embeddings when no model is trained."""
        known = pool.rows(State.LABELLED)
        labelled = View(known, self._fixed(known, scratch), None, torch.empty(0))
        return Snapshot(code.task, self._candidates(None, rows, scratch), labelled)

    def points(self, fit: Fitted | None, rows: IntArray, scratch: Scratch) -> torch.Tensor:
        """(n, d) float32 of any rows, for distances: the given geometry, the fit's embeddings, or the inputs."""
        if fit is not None and self._geometry_for(fit) is None:
            return view(fit, self.source, rows, scratch, chunk_size=self.chunk_size).embeddings
        return self._fixed(rows, scratch)

    def _fixed(self, rows: IntArray, scratch: Scratch) -> torch.Tensor:
        """(n, d) float32, read chunk by chunk: the given vectors, or the inputs themselves."""
        space = self._space(self.source)
        return fixed_points(space, rows, scratch, self.chunk_size) if len(rows) else space.read(self.rows[:1])[:0]

    def _space(self, source: Source) -> Space:
        if isinstance(self.geometry, Vectors):
            return Space(source, None, self.geometry if source is self.source else self._sent_vectors)
        return Space(source, self.prepared)

    @cached_property
    def _sent(self) -> Source:
        """The source as workers of the engine read it."""
        return carried(self.source, self.engine.share)

    @cached_property
    def _sent_vectors(self) -> Vectors | None:
        return Vectors(carried(self.geometry.source, self.engine.share)) if isinstance(self.geometry, Vectors) else None

    def predict(self, fit: Fitted, X: Any) -> View:
        """Other samples, preprocessed like the pool."""
        source = self._opened(X)
        with Scratch() as scratch:
            return view(fit, source, np.arange(len(source)), scratch, chunk_size=self.chunk_size)

    def _opened(self, X: Any, name: str = "X") -> Source:
        return as_source(X, name, objects=getattr(self.learner, "objects", False))

    def _validation(self, code: LabelCode) -> Examples | None:
        if self.validation is None:
            return None
        source = self._opened(self.validation[0], "validation")
        labels: AnyArray = np.asarray([code.encode(label) for label in self.validation[1]], dtype=np.float64)
        if len(labels) != len(source):
            raise InputError(f"validation has {len(source)} samples and {len(labels)} labels; pass as many of each")
        return Examples(source, np.arange(len(source)), labels, code.task, _names(code))


def _is_network(fit: Fitted) -> bool:
    """Whether its embedding is learned from the labels; an average has that of its lead."""
    return isinstance(getattr(fit, "lead", fit), FittedNetwork)


def _names(code: LabelCode) -> tuple[Any, ...] | None:
    return None if code.classes is None else tuple(code.classes.tolist())


def _told(seen: View, labels: FloatArray) -> HeldOut:
    assert seen.probabilities is not None
    return HeldOut(seen.probabilities, torch.from_numpy(labels.astype(np.int64)))


def _candidate_duals(fit: Fitted, candidates: IntArray) -> torch.Tensor | None:
    """λ of the candidates, from the rows that the objective held them for."""
    duals, rows = fit.duals.get("unlabelled"), fit.unlabelled_rows
    if duals is None or rows is None:
        return None
    places = np.searchsorted(rows, candidates)
    if len(candidates) and (places[-1] >= len(rows) or (rows[places] != candidates).any()):
        raise InputError(
            "some samples became free after the fit, so they have no dual; tell some answers and ask again"
        )
    return duals[torch.from_numpy(places)]


def blind(pool: Pool, code: LabelCode, rows: IntArray) -> Snapshot:
    """Rows only, for strategies that do not use the model."""
    candidates, labelled = (
        View(some, torch.empty(0, 0), None, torch.empty(0)) for some in (rows, pool.rows(State.LABELLED))
    )
    return Snapshot(code.task, candidates, labelled)
