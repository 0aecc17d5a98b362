"""Logistic and ridge regression as a learner: solved to optimality, with exact duals and a penalty chosen by
cross-validation at every fit."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ally.checks import check_number
from ally.constrained import Eps, Slacks, resolve_eps
from ally.constrained.convex import UNBOUNDED, Constraints, Design, Solution, cross_entropy, solve, squared_error
from ally.constrained.diagnostics import find_trouble
from ally.constrained.strength import grid, logistic_strength, ridge_strength
from ally.data import Scaler, Source, fit_scaler
from ally.data.arrays.scaling import Scaling
from ally.errors import DataError, InputError, ModelError
from ally.learning.fitted_network import seen_through
from ally.learning.learner import Examples, FitReport, Unlabelled
from ally.learning.losses import PRIMARY, TargetScale, resolve_loss
from ally.learning.model_header import get_scaler, get_tensor
from ally.learning.objectives import ERM, PDCL, Feasibility, Objective, Resilient
from ally.learning.snapshot import ByBlocks, Seen
from ally.learning.splits import repeated_splits
from ally.rng import Streams
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

WIDE, AXES, SAMPLE = 1024, 256, 1024
"""Inputs of more than `WIDE` features are embedded along the `AXES` directions in which `SAMPLE` of them vary most."""
FOLDS = 5
MOST = 1000
"""Choose the penalty on at most this many labels: a seeded sample if there are more."""
UNCHOSEN = 6
"""Position in the penalty grid if there are too few labels to choose: C = 16 / spread."""
TOLERANCE = 1e-6


@dataclass(frozen=True)
class LinearLearner:
    """Minimises mean ℓ + ‖W‖² / (2 C n), under ℓ_i ≤ ε_i where the objective has constraints.

    Attributes:
        scale: ``"columns"`` divides every feature by its own deviation, ``"common"`` all by one, which keeps distances
            as they are: for vectors of an encoder. None decides by the samples: common for sparse matrices and for
            vectors, columns for tables.
        C: strength for the scaled features; None chooses it by cross-validation at every fit.
        tighten: a linear model with more features than labels may fit all of them closer than ε. Then no constraint
        binds: all duals are zero and rank nothing. True uses ``"auto"`` for ε in that case, and a note says so.
    """

    scale: Scaling | None = None
    C: float | None = None
    tighten: bool = True
    scaler: Scaler | None = field(default=None, repr=False, compare=False)
    """The scaler of the pool, once `prepared`."""
    axes: AnyArray | None = field(default=None, repr=False, compare=False)
    """(d, AXES) float32 for wide inputs, once `prepared`."""

    def __post_init__(self) -> None:
        if self.scale not in (None, "columns", "common"):
            raise InputError.about("scale", self.scale, "; pass 'columns', 'common' or None")
        if self.C is not None:
            check_number("C", self.C, positive=True)

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        if type(objective) not in (ERM, PDCL, Feasibility, Resilient):
            return (
                "a linear model is solved exactly for erm, pdcl, feasibility and resilient, not for "
                f"{objective}; use model='mlp'"
            )
        if getattr(objective, "regularizer", None) is not None:
            return "a linear model has a penalty of its own; leave the objective's regularizer out, or use model='mlp'"
        secondary = getattr(objective, "secondary_loss", None)
        if secondary is not None and resolve_loss(secondary, task) is not PRIMARY[task]:
            return (
                f"a linear model constrains its own loss, not {secondary}; leave secondary_loss out, or use model='mlp'"
            )
        return None

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> LinearLearner:
        if self.scaler is not None:
            return self
        scaler = fit_scaler(source, rows, chunk_size, self.scale)
        width = math.prod(source.shape)
        if width <= WIDE:
            return replace(self, scaler=scaler)
        some = rows[np.unique(np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64))]
        sample = scaler.of(source).read(some).reshape(len(some), width)
        return replace(self, scaler=scaler, axes=Design(sample).axes(AXES).astype(np.float32))

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> LinearLearner:
        return self

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        return _embedded(_flat(self.scaler, source, rows), self.axes)

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
    ) -> FittedLinear:
        """Members of an ensemble are trained on resamples. There is nothing to stop early."""
        reason = self.supports(objective, examples.task)
        if reason is not None:
            raise ModelError(reason)
        started = time.perf_counter()
        outputs, task = examples.outputs, examples.task
        scale = TargetScale.of(examples.labels) if task == "regression" else TargetScale()
        drawn = np.arange(len(examples)) if member == 0 else _resample(examples, streams)
        design = Design(_flat(self.scaler, examples.source, examples.rows[drawn]).double().numpy())
        fit = _Fit(design, examples.at(drawn), scale, objective, streams, self.C, self.tighten)
        found = fit.solve()
        duals: dict[str, torch.Tensor] = {}
        if not isinstance(objective, ERM):
            per_row = np.zeros(len(examples))
            np.maximum.at(per_row, drawn, found.duals)
            duals["labelled"] = torch.from_numpy(per_row).float()
        report = FitReport(
            samples=len(examples),
            epochs=1,
            kept_epoch=1,
            train_loss=float(found.losses.mean()),
            validation_loss=None,
            positive_duals=float((found.duals > 0).mean()) if duals else None,
            slacks=None if fit.eps is None else Slacks.of(torch.from_numpy(found.losses - fit.eps)),
            capped_duals=None if fit.eps is None else float((found.duals >= fit.cap).mean()),
            dual_residual=None if fit.eps is None else found.residual,
            seconds=time.perf_counter() - started,
            dual_epoch=1,
            notes=fit.notes,
        )
        weights, intercept = _every_class(design, found, fit.seen, outputs)
        return FittedLinear(
            weights, intercept, task, examples.classes, scale, report, duals, self.scaler, self.axes,
            examples.source.shape, fit.C,
        )  # fmt: skip


class _Fit:
    """One problem of the exact solver, over the classes that have labels."""

    def __init__(
        self, design: Design, examples: Examples, scale: TargetScale, objective: Objective, streams: Streams,
        C: float | None, tighten: bool,
    ) -> None:  # fmt: skip
        self.design = design
        self.task = examples.task
        self.objective = objective
        self.targets: AnyArray
        if self.task == "classification":
            self.seen, self.targets = np.unique(examples.labels.astype(np.int64), return_inverse=True)
        else:
            self.seen, self.targets = np.zeros(1, np.int64), np.asarray(scale.apply(examples.labels), dtype=np.float64)
        self.cap = UNBOUNDED
        if isinstance(objective, PDCL) and objective.dual_cap is not None:
            self.cap = objective.dual_cap
        self.C = self._choose_strength(streams) if C is None else C
        self.tighten = tighten
        self._streams = streams
        self.eps: FloatArray | None = None
        self.notes: tuple[str, ...] = ()
        self._weights = examples.weights
        self._names = None if examples.classes is None else examples.classes
        self._numbers = torch.from_numpy(examples.labels if self.task == "classification" else self.targets)

    def _choose_strength(self, streams: Streams) -> float:
        rng, n, spread = streams.numpy("strength"), len(self.targets), self.design.spread
        some = np.sort(rng.permutation(n)[:MOST])
        rows, targets = self.design.rows[some], self.targets[some]
        if self.task == "regression":
            return ridge_strength(rows, targets, spread).C if n > 2 else float(grid(spread)[UNCHOSEN])
        splits = repeated_splits(targets, FOLDS, 4 if n < 50 else 2 if n < 200 else 1, rng, classes=True)
        if not splits:
            return float(grid(spread)[UNCHOSEN])
        return logistic_strength(rows, targets, len(self.seen), spread, splits).C

    def _solve(self, constraints: Constraints | None, start: Solution | None = None) -> Solution:
        loss = cross_entropy if self.task == "classification" else squared_error
        total = len(self.targets) if self._weights is None else float(self._weights.sum())
        return solve(
            self.design.rows, self.targets, loss, len(self.seen), 1 / (self.C * total), constraints, start,
            tolerance=TOLERANCE, weights=self._weights,
        )  # fmt: skip

    def solve(self) -> Solution:
        plain = self._solve(None)
        objective = self.objective
        if not isinstance(objective, PDCL):
            return plain
        self.eps = self._level(objective.eps, plain)
        felt = self._constrained(objective, plain)
        if self.tighten and not felt.duals.any():
            met = float(self.eps.min())
            self.eps = self._level("auto", plain)
            felt = self._constrained(objective, plain)
            self.notes = (
                f"every label is fitted closer than eps={met:.3g}, so no dual is positive; "
                f"the duals are those of eps='auto', {float(self.eps.max()):.3g}",
                *self.notes,
            )
        return felt

    def _level(self, eps: Eps, plain: Solution) -> FloatArray:
        """ε of each sample, (n,)."""
        found = resolve_eps(
            eps,
            self._numbers,
            task=self.task,
            classes=self._names,
            reference_loss=lambda: float(plain.losses.mean()),
        )
        return np.asarray(found.double().numpy())

    def _held_out(self, plain: Solution) -> FloatArray:
        """(n,) the loss of each sample from a model that was not trained on it; in-sample for the only label of a
        class."""
        rows, targets, losses = self.design.rows, self.targets, plain.losses.copy()
        classes = self.task == "classification"
        loss = cross_entropy if classes else squared_error
        for train, test in repeated_splits(targets, FOLDS, 1, self._streams.numpy("held out"), classes=classes):
            penalty = 1 / (self.C * len(train))
            found = solve(rows[train], targets[train], loss, len(self.seen), penalty, start=plain, tolerance=1e-3)
            losses[test] = loss(found.outputs(rows[test]), targets[test]).losses
        return losses

    def _constrained(self, objective: PDCL, plain: Solution) -> Solution:
        assert self.eps is not None
        if not objective.weighted:
            return replace(plain, duals=np.maximum(self._held_out(plain) - self.eps, 0.0))
        if isinstance(objective, Resilient):
            return self._solve(Constraints(self.eps, self.cap, slope=objective.slope), plain)
        risk = 0.0 if isinstance(objective, Feasibility) else 1.0
        found = self._solve(Constraints(self.eps, self.cap, risk), plain)
        self.notes = find_trouble(found.duals, found.losses - self.eps, found.residual)
        return found


def _every_class(design: Design, found: Solution, seen: IntArray, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights (d, K) and intercepts (K,) of the raw features as they are scaled. A class without labels has the
    probability 0 everywhere: any logit above −∞ would win where those of the others are small."""
    own = design.features(found.weights)
    weights, intercept = np.zeros((len(own), outputs)), np.full(outputs, -np.inf)
    weights[:, seen] = own
    intercept[seen] = found.intercept - design.mean @ own
    return torch.from_numpy(weights), torch.from_numpy(intercept)


def _resample(examples: Examples, streams: Streams) -> IntArray:
    """Places of a bootstrap sample that has every class that has labels."""
    drawn = streams.numpy("resample").integers(len(examples), size=len(examples))
    if examples.task == "classification":
        _, first = np.unique(examples.labels, return_index=True)
        drawn = np.concatenate([drawn, first[~np.isin(examples.labels[first], examples.labels[drawn])]])
    return np.sort(drawn)


def _flat(scaler: Scaler | None, source: Source, rows: IntArray, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    values = seen_through(scaler, source, shape).read(rows).reshape(len(rows), math.prod(source.shape))
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def _embedded(x: torch.Tensor, axes: AnyArray | None) -> torch.Tensor:
    return x if axes is None else x @ torch.from_numpy(axes)


@dataclass(frozen=True, eq=False)
class FittedLinear(ByBlocks):
    """W and b of the scaled features, float64."""

    weights: torch.Tensor = field(repr=False)
    """(d, K)."""
    intercept: torch.Tensor = field(repr=False)
    task: Task
    classes: tuple[Any, ...] | None
    scale: TargetScale
    report: FitReport
    duals: dict[str, torch.Tensor] = field(default_factory=dict, repr=False)
    scaler: Scaler | None = field(default=None, repr=False)
    axes: AnyArray | None = field(default=None, repr=False)
    shape: tuple[int, ...] | None = None
    C: float = math.nan
    """The strength of the penalty."""
    unlabelled_rows: IntArray | None = None

    @property
    def held_out(self) -> None:
        return None

    @property
    def spreads(self) -> bool:
        return False

    def inputs(self, source: Source, rows: IntArray) -> torch.Tensor:
        return _flat(self.scaler, source, rows, self.shape)

    def outputs(self, x: torch.Tensor) -> torch.Tensor:
        values = x.double() @ self.weights + self.intercept
        return values.softmax(1) if self.task == "classification" else values

    def sampled(self, x: torch.Tensor, samples: int, seed: int) -> Sequence[torch.Tensor]:
        raise ModelError("a linear model has one solution, so predictions have no spread; use members > 1")

    def dropped(self, x: torch.Tensor, samples: int, rate: float, seed: int) -> Sequence[torch.Tensor]:
        """Units of the inputs are lost."""
        generator = torch.Generator().manual_seed(seed)
        kept = [torch.rand(x.shape, generator=generator) >= rate for _ in range(samples)]
        return [self.outputs(x * mask / (1 - rate)) for mask in kept]

    def packed(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        tensors = {"weights": self.weights.contiguous(), "intercept": self.intercept.contiguous()}
        if self.scaler is not None:
            tensors["input.mean"] = torch.from_numpy(np.ascontiguousarray(self.scaler.mean))
            tensors["input.scale"] = torch.from_numpy(np.ascontiguousarray(self.scaler.scale))
        if self.axes is not None:
            tensors["axes"] = torch.from_numpy(np.ascontiguousarray(self.axes))
        return {
            "kind": "linear",
            "shape": None if self.shape is None else list(self.shape),
            "target": [self.scale.mean, self.scale.std],
            "C": self.C,
        }, tensors

    def _look(self, x: torch.Tensor, rows: IntArray) -> Seen:
        outputs, embedding = self.outputs(x), _embedded(x, self.axes)
        if self.task == "classification":
            return Seen(embedding, outputs.float(), outputs.argmax(1))
        return Seen(embedding, None, self.scale.invert(outputs.squeeze(1)))


def rebuilt(
    facts: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> FittedLinear:
    """A linear model from what `FittedLinear.packed` gave."""
    shape = tuple(facts["shape"])
    width, outputs = math.prod(shape), 1 if classes is None else len(classes)
    axes = tensors.get("axes")
    if axes is not None:
        axes = get_tensor(tensors, "axes", (width, min(axes.shape[-1:], default=0)), torch.float32)
    intercept = get_tensor(tensors, "intercept", (outputs,), torch.float64, finite=False)
    # A class without labels has minus infinity, and never wins.
    if not bool(torch.isfinite(intercept.max())):
        raise DataError("the intercepts are not finite; train again")
    return FittedLinear(
        get_tensor(tensors, "weights", (width, outputs), torch.float64),
        intercept,
        facts["task"],
        classes,
        TargetScale(*map(float, facts["target"])),
        report,
        scaler=get_scaler(tensors, shape),
        axes=None if axes is None else axes.numpy(),
        shape=shape,
        C=float(facts["C"]) if isinstance(facts["C"], (int, float)) else math.nan,
    )
