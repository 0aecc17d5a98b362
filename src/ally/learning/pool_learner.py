"""A learner and the pool it serves: trains on the labelled rows, then says what it sees in the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch

from ally.errors import InputError
from ally.execution.memory import Scratch
from ally.learning.calibration import folds
from ally.learning.fit import Fit
from ally.learning.learner import Learner
from ally.learning.objectives import Objective
from ally.learning.readouts import Readout
from ally.learning.snapshot import HeldOut, Snapshot, View, view
from ally.learning.training import Examples, Training, Unlabelled
from ally.models import ModelBuilder
from ally.pool import LabelCode, Pool, State
from ally.rng import Streams
from ally.sources import Checked, Scaler, Source, Vectors, as_source, chunks, fit_scaler
from ally.types import AnyArray, FloatArray, IntArray, Progress

FOLDS = 2
"""Each is a training. On digits five came little closer to the temperature that fits the unlabelled samples."""


@dataclass
class PoolLearner:
    """Features are standardised by the mean and scale of `rows`, which never change, unless the model takes them
    raw."""

    raw: Source
    rows: IntArray
    build: ModelBuilder
    objective: Objective
    training: Training
    streams: Streams
    standardized: bool = True
    validation: tuple[Any, Any] | None = None
    chunk_size: int | None = None
    progress: Progress | None = None
    given_scaler: Scaler | None = None
    geometry: Vectors | Literal["inputs"] | None = None
    """Where distances are measured instead of the network's embeddings: fixed vectors, or the inputs it sees."""
    _scaler: Scaler | None = field(default=None, init=False)

    def fit(self, pool: Pool, code: LabelCode, member: int = 0) -> Fit:
        """A fresh network trained on every labelled row; members of an ensemble differ in weights and shuffling."""
        streams = self.streams if member == 0 else self.streams.child(f"member {member}")
        return self._fit(pool, code, pool.rows(State.LABELLED), streams)

    def _fit(self, pool: Pool, code: LabelCode, rows: IntArray, streams: Streams) -> Fit:
        learner = Learner(
            self.build, code.task, None if code.classes is None else tuple(code.classes.tolist()), self.training
        )
        return learner.fit(
            Examples(self.source.read(rows), pool.values(rows)),
            self.objective,
            streams,
            validation=self._validation(code),
            unlabelled=Unlabelled(self.source, pool.rows(State.FREE)),
            progress=self.progress,
        )

    def held_out(self, fit: Fit, pool: Pool, code: LabelCode) -> HeldOut | None:
        """Predictions for labelled samples by networks that were not trained on them.

        These are what the fit says about the validation samples. Without any, each of `FOLDS` folds of the labelled
        samples is predicted by a network trained on the others. None for a single label, and for regression.
        """
        validation, rows = self._validation(code), pool.rows(State.LABELLED)
        if code.classes is None or (validation is None and len(rows) < 2):
            return None
        if self.validation is not None and validation is not None:
            return _told(self.predict(fit, self.validation[0]), validation.y)
        fold = folds(pool.values(rows), FOLDS, self.streams.numpy("folds"))
        parts = []
        for number in range(FOLDS):
            trained = self._fit(pool, code, rows[fold != number], self.streams.child(f"fold {number}"))
            with Scratch() as scratch:
                seen = view(trained, self.source, rows[fold == number], scratch, chunk_size=self.chunk_size)
            parts.append(_told(seen, pool.values(seen.rows)))
        return HeldOut(torch.cat([part.probabilities for part in parts]), torch.cat([part.labels for part in parts]))

    def snapshot(
        self,
        fit: Fit,
        pool: Pool,
        rows: IntArray,
        scratch: Scratch,
        *,
        members: Sequence[Fit] = (),
        readouts: Sequence[Readout] = (),
        seed: int = 0,
    ) -> Snapshot:
        """What the fit (and the other members of its ensemble) say about the candidates `rows`, ascending, and the
        labelled rows."""
        source, chunk_size = self.source, self.chunk_size
        candidates = view(
            fit,
            source,
            rows,
            scratch,
            members=members,
            readouts=readouts,
            seed=seed,
            chunk_size=chunk_size,
            progress=self.progress,
        )
        labelled = view(fit, source, pool.rows(State.LABELLED), scratch, chunk_size=chunk_size)
        if self.geometry is not None:
            candidates, labelled = (
                replace(seen, geometry=self._fixed(seen.rows, scratch)) for seen in (candidates, labelled)
            )
        labels = torch.from_numpy(pool.values(labelled.rows))
        return Snapshot(fit.task, candidates, labelled, labels, fit.duals.get("labelled"), _candidate_duals(fit, rows))

    def untrained(self, pool: Pool, code: LabelCode, rows: IntArray, scratch: Scratch) -> Snapshot:
        """The given geometry, or the inputs themselves, as embeddings, for want of a trained network."""
        candidates, labelled = (
            View(some, self.points(None, some, scratch), None, torch.empty(0))
            for some in (rows, pool.rows(State.LABELLED))
        )
        return Snapshot(code.task, candidates, labelled)

    def points(self, fit: Fit | None, rows: IntArray, scratch: Scratch) -> torch.Tensor:
        """(n, d) float32 of any rows, for distances: the given geometry, the fit's embeddings, or the inputs."""
        if self.geometry is None and fit is not None:
            return view(fit, self.source, rows, scratch, chunk_size=self.chunk_size).embeddings
        return self._fixed(rows, scratch)

    def _fixed(self, rows: IntArray, scratch: Scratch) -> torch.Tensor:
        """(n, d) float32, read chunk by chunk: the given vectors, or the inputs themselves."""
        vectors: Vectors | Source = self.geometry if isinstance(self.geometry, Vectors) else self.source
        found = scratch.empty(len(rows), int(np.prod(vectors.shape)))
        for chunk in chunks(len(rows), self.chunk_size, found.shape[1]):
            values = vectors.read(rows[chunk]).reshape(chunk.stop - chunk.start, -1)
            found[chunk] = torch.from_numpy(values.astype(np.float32, copy=False))
        return found

    def predict(self, fit: Fit, X: Any) -> View:
        """Other samples, seen the way the pool is."""
        source = self._like(as_source(X))
        with Scratch() as scratch:
            return view(fit, source, np.arange(len(source)), scratch, chunk_size=self.chunk_size)

    @property
    def source(self) -> Source:
        """The pool as the network sees it."""
        return self._like(self.raw)

    @property
    def scaler(self) -> Scaler | None:
        """How features are standardised; None if the model takes them raw."""
        if self.standardized and self._scaler is None:
            self._scaler = self.given_scaler or fit_scaler(self.raw, self.rows, self.chunk_size)
        return self._scaler

    def _like(self, raw: Source) -> Source:
        if raw.shape != self.raw.shape:
            raise InputError(
                f"the samples have shape {raw.shape} and the pool's {self.raw.shape}; pass the same features"
            )
        scaler = self.scaler
        return Checked(raw) if scaler is None else scaler.of(raw)

    def _validation(self, code: LabelCode) -> Examples | None:
        if self.validation is None:
            return None
        source = self._like(as_source(self.validation[0], "validation"))
        labels: AnyArray = np.asarray([code.encode(label) for label in self.validation[1]], dtype=np.float64)
        if len(labels) != len(source):
            raise InputError(f"validation has {len(source)} samples and {len(labels)} labels; pass as many of each")
        return Examples(source.read(np.arange(len(source))), labels)


def _told(seen: View, labels: FloatArray) -> HeldOut:
    assert seen.probabilities is not None
    return HeldOut(seen.probabilities, torch.from_numpy(labels.astype(np.int64)))


def _candidate_duals(fit: Fit, candidates: IntArray) -> torch.Tensor | None:
    """λ of the candidates, from the rows that the objective held them for."""
    duals, rows = fit.duals.get("unlabelled"), fit.unlabelled_rows
    if duals is None or rows is None:
        return None
    places = np.searchsorted(rows, candidates)
    if len(candidates) and (places[-1] >= len(rows) or (rows[places] != candidates).any()):
        raise InputError(
            "samples became free after the fit, so that they have no dual; tell some answers and ask again"
        )
    return duals[torch.from_numpy(places)]


def blind(pool: Pool, code: LabelCode, rows: IntArray) -> Snapshot:
    """Rows only, for strategies that look at nothing."""
    candidates, labelled = (
        View(some, torch.empty(0, 0), None, torch.empty(0)) for some in (rows, pool.rows(State.LABELLED))
    )
    return Snapshot(code.task, candidates, labelled)
