"""A fitted scikit-learn estimator with the interface of any other fitted learner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble._forest import BaseForest

from ally.data import Source
from ally.data.arrays.scaling import check_finite
from ally.errors import DataError, InputError, ModelError, NonFiniteInput
from ally.learning.geometry import Geometry, Leaves, Nowhere, Standardised, Transformed, dense, is_sparse, len_of
from ally.learning.learner import FitReport
from ally.learning.losses import TargetScale
from ally.learning.model_header import get_scaler
from ally.learning.other_estimators import convert_samples, is_skorch
from ally.learning.pipelines import called, first_steps, last_step, takes_nan
from ally.learning.snapshot import ByBlocks, Seen
from ally.learning.stored_estimator import as_bytes, from_bytes, is_signed, sign_parts, untrusted
from ally.rng import seeded_torch
from ally.types import AnyArray, FloatArray, IntArray, Task


@dataclass(frozen=True, eq=False)
class FittedEstimator(ByBlocks):
    """A fitted estimator with the meaning of its columns and units."""

    estimator: Any = field(repr=False)
    task: Task
    classes: tuple[Any, ...] | None
    columns: tuple[int, ...]
    """The class number of each column that ``predict_proba`` gives; () for regression."""
    scale: TargetScale
    report: FitReport
    duals: dict[str, torch.Tensor] = field(default_factory=dict, repr=False)
    held_out: tuple[torch.Tensor | None, torch.Tensor] | None = field(default=None, repr=False)
    geometry: Geometry = field(default=Standardised(), repr=False)
    shape: tuple[int, ...] | None = None
    """Shape of a sample; None if it is not known."""
    own: str | None = None
    """The import path that built the estimator, ``module:builder``, if it was given by one."""

    @property
    def unlabelled_rows(self) -> None:
        return None

    @property
    def spreads(self) -> bool:
        """The trees of a forest are its posterior."""
        return isinstance(last_step(self.estimator), BaseForest)

    def inputs(self, source: Source, rows: IntArray) -> Any:
        """Samples in the form that the estimator takes: an array (B, d), a sparse matrix, texts, or a frame."""
        if self.shape is not None and source.shape != self.shape:
            raise InputError(
                f"the samples have shape {source.shape} and the model takes {self.shape}; pass the same features"
            )
        return read_samples(source, rows, self.estimator)

    def outputs(self, x: Any) -> torch.Tensor:
        if self.task == "regression":
            return torch.from_numpy(self.scale.apply(self._predicted(x))[:, None])
        return torch.from_numpy(self._probabilities(x))

    def sampled(self, x: Any, samples: int, seed: int) -> Sequence[torch.Tensor]:
        """Trees of a forest, at most `samples` of them, drawn once for all blocks."""
        if not self.spreads:
            raise ModelError(
                f"{called(self.estimator)} has no spread of its own and there is one learner, so predictions have no "
                "spread; use a forest, such as model='extra-trees', or members > 1"
            )
        forest, before = last_step(self.estimator), first_steps(self.estimator)
        inner = x if before is None else before.transform(x)
        inner = inner.astype(np.float32) if is_sparse(inner) else np.asarray(inner, dtype=np.float32)
        trees = forest.estimators_
        if len(trees) > samples:
            trees = [trees[k] for k in np.sort(np.random.default_rng(seed).permutation(len(trees))[:samples])]
        if self.task == "regression":
            return [torch.from_numpy(self.scale.apply(tree.predict(inner))[:, None]) for tree in trees]
        # A tree counts classes as the forest's columns do.
        return [torch.from_numpy(self._spread(tree.predict_proba(inner), tree.classes_.astype(int))) for tree in trees]

    def dropped(self, x: Any, samples: int, rate: float, seed: int) -> Sequence[torch.Tensor]:
        """The embedding of an estimator is its standardised input: some units are set to the mean and the others
        scaled up, as in dropout."""
        geometry = self.geometry
        if not isinstance(geometry, Standardised) or geometry.scaler is None:
            raise ModelError(
                f"the inputs of {called(self.estimator)} are not numeric columns, so none can be dropped; use "
                "another strategy, such as 'margin' or 'uherding'"
            )
        mean = geometry.scaler.mean
        values = np.asarray(dense(x), dtype=np.float64)
        rng = np.random.default_rng(seed)
        found = []
        for _ in range(samples):
            kept = rng.random(values.shape) >= rate
            changed = mean + np.where(kept, (values - mean) / (1.0 - rate), 0.0)
            found.append(self.outputs(convert_samples(_like(x, changed), self.estimator)))
        return found

    def packed(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        facts: dict[str, Any] = {
            "kind": "estimator",
            "own": None,
            "columns": list(self.columns),
            "target": [self.scale.mean, self.scale.std],
            "shape": None if self.shape is None else list(self.shape),
        }
        tensors = {"estimator": as_bytes(self.estimator, self.own)}
        if untrusted(tensors["estimator"], None):
            facts["own"] = self.own
        geometry = self.geometry
        if isinstance(geometry, Standardised):
            facts["geometry"] = "inputs"
            if geometry.scaler is not None:
                tensors["input.mean"] = torch.from_numpy(np.ascontiguousarray(geometry.scaler.mean))
                tensors["input.scale"] = torch.from_numpy(np.ascontiguousarray(geometry.scaler.scale))
        elif isinstance(geometry, Transformed):
            facts["geometry"] = "transformed"
            facts["projected"] = None if geometry.projection is None else len(geometry.projection)
            tensors["geometry"] = as_bytes(geometry.steps, self.own)
        else:
            facts["geometry"] = "leaves" if isinstance(geometry, Leaves) else "nowhere"
        return {**facts, "signature": sign_parts(facts, tensors)}, tensors

    def _look(self, x: Any, rows: IntArray) -> Seen:
        points = self.geometry(x)
        if self.task == "regression":
            values = self._predicted(x)
            self._ensure_finite(values[:, None], rows)
            return Seen(points, None, torch.from_numpy(values))
        if not hasattr(self.estimator, "predict_proba"):
            return Seen(points, None, torch.from_numpy(self._numbers(self.estimator.predict(x))))
        p = self._probabilities(x)
        self._ensure_finite(p, rows)
        return Seen(points, torch.from_numpy(p.astype(np.float32)), torch.from_numpy(p.argmax(1)))

    def _predicted(self, x: Any) -> FloatArray:
        """(B,) targets in their own units."""
        with _leave_torch_alone(self.estimator):
            return np.asarray(self.estimator.predict(x), dtype=np.float64).reshape(len_of(x))

    def _probabilities(self, x: Any) -> FloatArray:
        """(B, C); 0 for classes without labels."""
        if not hasattr(self.estimator, "predict_proba"):
            raise ModelError(f"{called(self.estimator)} has no predict_proba; use a classifier that has")
        with _leave_torch_alone(self.estimator):
            p = np.asarray(self.estimator.predict_proba(x))
        if len(self.columns) == 1:
            # Some estimators return two columns for one class.
            p = np.ones((len(p), 1))
        if is_skorch(self.estimator) and p.ndim == 2 and p.shape[1] > len(self.columns):
            # The last outputs of the network stand for classes that have no label.
            p = p[:, : len(self.columns)] / p[:, : len(self.columns)].sum(axis=1, keepdims=True)
        if p.ndim != 2 or p.shape[1] != len(self.columns):
            raise ModelError(
                f"predict_proba of {called(self.estimator)} gives shape {p.shape} for {len(self.columns)} classes; one "
                "column per class is needed"
            )
        return self._spread(p, np.arange(len(self.columns)))

    def _spread(self, p: AnyArray, which: IntArray) -> FloatArray:
        """Columns put where their classes are; `which` of the estimator's own each is."""
        assert self.classes is not None
        found = np.zeros((len(p), len(self.classes)))
        found[:, np.asarray(self.columns)[which]] = p
        return found

    def _numbers(self, predicted: AnyArray) -> IntArray:
        """Class numbers of what the estimator calls the classes."""
        own = getattr(self.estimator, "classes_", np.arange(len(self.columns)))
        of = dict(zip(np.asarray(own).tolist(), self.columns, strict=True))
        return np.asarray([of[name] for name in np.asarray(predicted).tolist()], dtype=np.int64)

    def _ensure_finite(self, values: FloatArray, rows: IntArray) -> None:
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise NonFiniteInput(
                f"{called(self.estimator)} gives NaN or infinity for sample {rows[bad[0]]}; check its features"
            ).at(rows[bad[0]])


def _leave_torch_alone(estimator: Any) -> AbstractContextManager[None]:
    """Within, a network of skorch draws from generators that are set back: it does for every batch it reads."""
    return seeded_torch(0) if is_skorch(estimator) else nullcontext()


def read_samples(source: Source, rows: IntArray, estimator: Any) -> Any:
    """Samples in the form that an estimator takes; numbers are checked, unless it takes NaN."""
    X = source.take(rows)
    if not source.numeric:
        return X
    if not takes_nan(estimator) and not (is_sparse(X) and np.isfinite(X.data).all()):
        check_finite(np.asarray(dense(X)), rows, source)
    return convert_samples(X, estimator)


def _like(x: Any, values: AnyArray) -> Any:
    """`values` in the form of `x`."""
    if is_sparse(x):
        return type(x)(values)
    return type(x)(values, columns=x.columns, index=x.index) if hasattr(x, "iloc") else values


def rebuilt(
    facts: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> FittedEstimator:
    """A fitted estimator from what `FittedEstimator.packed` gave."""
    own, shape = facts["own"], None if facts["shape"] is None else tuple(facts["shape"])
    mine = is_signed(facts, tensors)
    estimator = from_bytes(tensors["estimator"], own, mine=mine)
    columns = tuple(facts["columns"])
    _check_outputs(estimator, facts["task"], columns, classes)
    if not mine:
        _check_width(estimator, shape)
    geometry: Geometry
    if facts["geometry"] == "leaves":
        if not isinstance(last_step(estimator), BaseForest):
            raise DataError(f"{called(estimator)} is not a forest, so it has no leaves; train again")
        geometry = Leaves(last_step(estimator), first_steps(estimator))
    elif facts["geometry"] == "transformed":
        geometry = Transformed.projected(from_bytes(tensors["geometry"], own, mine=mine), facts["projected"])
    elif facts["geometry"] == "nowhere":
        geometry = Nowhere()
    else:
        geometry = Standardised(get_scaler(tensors, () if shape is None else (math.prod(shape),)))
    return FittedEstimator(
        estimator,
        facts["task"],
        classes,
        columns,
        TargetScale(*map(float, facts["target"])),
        report,
        geometry=geometry,
        shape=shape,
        own=own,
    )


def _check_outputs(estimator: Any, task: Task, columns: tuple[int, ...], classes: tuple[Any, ...] | None) -> None:
    """It predicts what the header says."""
    if not (is_classifier if task == "classification" else is_regressor)(estimator):
        raise DataError(f"{called(estimator)} does no {task}; train again")
    known = () if classes is None else range(len(classes))
    own = len(columns) if classes is None else len(getattr(estimator, "classes_", columns))
    if len(set(columns)) < len(columns) or not set(columns) <= set(known) or len(columns) != own:
        raise DataError(
            f"{called(estimator)} has {own} classes, which are {columns!r:.60} of {len(known)}; train again"
        )


def _check_width(estimator: Any, shape: tuple[int, ...] | None) -> None:
    """It reads as many columns as samples have."""
    width = getattr(last_step(estimator), "n_features_in_", None)
    if shape is None or width != math.prod(shape):
        raise DataError(f"{called(estimator)} reads {width!r:.60} columns of samples {shape!r:.60}; train again")
