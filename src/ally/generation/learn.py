"""A network with duals to ascend on, and its least informative samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ally.checks import check_count
from ally.data import Pool, State, as_source, parse_labels
from ally.errors import InputError, ModelError, PoolExhausted
from ally.execution.memory import Scratch
from ally.generation.bounds import Bounds, bounds_of
from ally.generation.dual import DualOf
from ally.learning.dual_head import DualHead, RidgeHead
from ally.learning.fitted_network import FittedNetwork
from ally.learning.head_features import Labelled
from ally.learning.learner import FitReport
from ally.learning.network import Network
from ally.learning.objectives import Objective, resolve_objective
from ally.learning.pool_learner import PoolLearner
from ally.learning.resolve import resolve_learner
from ally.learning.training import Training
from ally.rng import Streams, streams
from ally.strategies import DUALS
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

Side = Literal["pool", "labelled"]


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Samples by absolute row, their predicted log(1 + λ) and their predicted class (or target)."""

    rows: IntArray
    ranking: FloatArray
    predictions: AnyArray


@dataclass(frozen=True, eq=False)
class Learned:
    """The predicted dual as a function of the sample, and what it says about the data it was learnt from."""

    dual: DualOf = field(repr=False)
    bounds: Bounds = field(repr=False)
    report: FitReport
    rank_quality: float | None
    """Cross-validated Spearman correlation of the head with λ."""
    pool: RankedRows = field(repr=False)
    labelled: RankedRows = field(repr=False)
    notes: tuple[str, ...] = ()
    validation: int = 0
    """Labelled samples that were held out to stop the training by."""

    def high(self, share: float = 0.1) -> float:
        """The predicted λ above which this share of the pool lies."""
        return math.expm1(max(0.0, float(np.quantile(self.pool.ranking, 1 - share))))

    def quietest(self, n: int, among: Side = "pool") -> IntArray:
        """Rows of n samples with the lowest predicted duals, a predicted class at a time so that all take part; equals
        by row."""
        check_count("n", n)
        side = self.pool if among == "pool" else self.labelled
        if n > len(side.rows):
            raise PoolExhausted(len(side.rows), n)
        order = np.lexsort((side.rows, side.ranking))
        if self.dual.fit.task == "regression":
            return side.rows[order[:n]]
        turn = np.empty(len(order), dtype=np.int64)
        for number in np.unique(side.predictions):
            of_class = np.flatnonzero(side.predictions[order] == number)
            turn[of_class] = np.arange(len(of_class))
        in_turn = np.argsort(turn, kind="stable")[:n]
        return side.rows[order[in_turn]]


def learn(
    X: Any,
    y: Any,
    *,
    task: Task | Literal["auto"] = "auto",
    classes: Any = None,
    objective: str | Objective = DUALS,
    head: DualHead = RidgeHead(),
    model: str = "mlp",
    training: Training = Training(),
    validation: int = 0,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Learned:
    """Trains a network by its constraints on the labelled rows of `X` and fits a dual head on their λ.

    Args:
        X, y: as for `ally.query`: a label per row, NaN or None where there is none.
        objective: one with a dual for every label: ``"pdcl"``, ``"feasibility"``, ``"resilient"``, or one of them with
            settings of yours.
        head: how λ is predicted: `RidgeHead` or `PaperHead`.
        model: a network by its name in `ally.models.MODELS`.
        validation: labelled rows, drawn at random, that are not trained on: training stops early by them
            (`Training.patience`).
    """
    source = as_source(X)
    parsed = parse_labels(y, len(source), task=task, classes=classes)
    seeds = streams(random_state)
    pool, held_out = _split(parsed.labels, check_count("validation", validation, least=0), seeds)
    learner = resolve_learner(model, source.shape, training)
    if not isinstance(learner, Network):
        raise ModelError(f"model={model!r} is not a network, so its duals have no gradient; use model='mlp'")
    pool_learner = PoolLearner(
        source=source,
        rows=np.arange(len(source)),
        learner=learner,
        objective=resolve_objective(objective),
        streams=seeds.child("training"),
        validation=(source.read(held_out), parsed.code.decode(parsed.labels[held_out])) if len(held_out) else None,
        progress=progress,
    )
    fit = pool_learner.fit(pool, parsed.code)
    assert isinstance(fit, FittedNetwork)
    with Scratch() as scratch:
        snapshot = pool_learner.snapshot(fit, pool, pool.rows(State.FREE), scratch)
        if snapshot.duals is None or snapshot.labels is None:
            raise InputError(
                f"objective {objective!r} has no dual for each label; use 'pdcl', 'feasibility' or 'resilient'"
            )
        fitted = head.fit(Labelled.of_known(snapshot), seeds.child("dual head"))
        pooled, labelled = (
            RankedRows(side.rows, fitted(side).numpy(), side.predictions.numpy().copy())
            for side in (snapshot.candidates, snapshot.labelled)
        )
        dual = DualOf(fit, fitted)
    return Learned(dual, bounds_of(X), fit.report, fitted.rank_quality, pooled, labelled, parsed.notes, len(held_out))


def _split(labels: FloatArray, validation: int, seeds: Streams) -> tuple[Pool, IntArray]:
    """The pool without `validation` of its labelled rows, and these rows; they are neither trained on nor started
    from."""
    known = np.flatnonzero(~np.isnan(labels))
    if validation and validation >= len(known):
        raise InputError.about(
            "validation", validation, f"of {len(known)} labelled samples leaves none to train on; hold out fewer"
        )
    held_out = np.sort(seeds.numpy("validation").permutation(known)[:validation])
    rest = labels.copy()
    rest[held_out] = np.nan
    pool = Pool(rest)
    pool.restrict(np.setdiff1d(np.arange(len(labels)), held_out))
    return pool, held_out
