"""The dual variable of every label: which labels are costly to fit, and which samples the model would not miss."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch

from ally.constrained import Eps, resolve_eps
from ally.constrained.diagnostics import find_ties
from ally.data import Ids, open_pool, parse_labels
from ally.data.aligning import align_rows, labels_by_row
from ally.errors import InputError, ModelError, NoDuals
from ally.learning.auto import AutoLearner
from ally.learning.learner import Examples, Fitted, Learner
from ally.learning.linear import LinearLearner
from ally.learning.losses import TargetScale
from ally.learning.objectives import ERM, PDCL, Objective, resolve_objective
from ally.learning.resolve import ensure_reads, learner_of, takes_objects
from ally.learning.training import Training
from ally.rng import streams
from ally.types import NULL, AnyArray, FloatArray, Task

LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class DualReport:
    """What training under constraints says about each label, in the order of the rows that have one.

    A high λ is a label that the others would pay for: wrong, ambiguous, or the only one of its kind. λ = 0 is a
    constraint that costs nothing: the model fits that label without being asked to.
    """

    ids: AnyArray = field(repr=False)
    duals: FloatArray = field(repr=False)
    """λ, (n,)."""
    slacks: FloatArray = field(repr=False)
    """ℓ' − ε of the trained model, (n,); positive where the constraint is violated. The loss is −log p of the label, or
    the squared error of standardised targets."""
    eps: FloatArray = field(repr=False)
    residual: float | None
    """How far λ is from optimal; None if the model's training does not say."""
    notes: tuple[str, ...]

    @property
    def ranking(self) -> AnyArray:
        """The ids, the label that costs most first. Equal duals, as those that are 0 or at their bound, by slack."""
        return self.ids[np.lexsort((np.arange(len(self.ids)), -self.slacks, -self.duals))]

    def to_frame(self) -> pd.DataFrame:
        """A row for each label, in the order of `ranking`."""
        table = pd.DataFrame({"dual": self.duals, "slack": self.slacks, "loss": self.slacks + self.eps}, index=self.ids)
        table.index.name = "id"
        return table.loc[self.ranking]


def dual_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    eps: Eps = None,
    dual_cap: float | None = None,
    objective: str | Objective = "pdcl",
    task: Task | Literal["auto"] = "auto",
    classes: Any = None,
    ids: Any = None,
    missing_label: Any = NULL,
    random_state: Any = None,
) -> DualReport:
    """Trains a model so that the loss of each label stays below ε, and reports what that cost for each.

    Args:
        model: ``"linear"`` (exact), ``"mlp"``, a scikit-learn estimator that takes ``sample_weight`` (logistic and
            ridge regression: exact), a torch module: all that `ally.query` takes as a model.
        X: the samples; those without a label are left out.
        y: one label per row; None or NaN (or `missing_label`) where there is none.
        eps: ε: a number, one per label, a mapping from class, ``"auto"`` (1.15 times the mean loss of a plain
            training), or None for the paper's 0.2 nats (0.1 for numbers).
        dual_cap: upper bound on λ, or None.
        objective: ``"pdcl"``, ``"feasibility"``, or an objective with duals.
        task, classes, ids, missing_label, random_state: as in `ally.query`.
    """
    wanted = resolve_objective(objective)
    if not isinstance(wanted, PDCL):
        raise NoDuals(
            f"objective={objective!r} has no dual variables of labels; use 'pdcl', 'feasibility' or 'resilient'"
        )
    ensure_reads(model, X)
    y, _, _, _, aligned = align_rows(X, y, None, None, None)
    pool = open_pool(X, ids=ids, labelled=True, objects=takes_objects(model), encoder=None)
    source, known_ids = pool.source, Ids(len(pool.source), pool.ids)
    y = labels_by_row(y, known_ids)
    parsed = parse_labels(y, len(source), task=task, classes=classes, missing_label=missing_label)
    rows = np.flatnonzero(parsed.known)
    if not len(rows):
        raise InputError("y holds no labels, and a dual belongs to a label; pass some labels")
    names = None if parsed.code.classes is None else tuple(parsed.code.classes.tolist())
    examples = Examples(source, rows, parsed.labels[rows], parsed.code.task, names)
    seeds = streams(random_state).child("training")
    learner, more = learner_of(model, source.shape, None, Training())
    reason = learner.supports(wanted, examples.task)
    if reason is not None:
        raise ModelError(reason)
    learner = learner.prepared(source, rows)

    def read_plain() -> float:
        plain = learner.settled(examples, ERM(), seeds).fit(examples, ERM(), seeds)
        return float(_read_losses(plain, examples).mean())

    levels = resolve_eps(
        wanted.eps if eps is None else eps,
        torch.from_numpy(examples.labels),
        task=examples.task,
        classes=names,
        reference_loss=read_plain,
    )
    wanted = replace(wanted, eps=levels.numpy(), dual_cap=wanted.dual_cap if dual_cap is None else dual_cap)
    fitted = _keep_levels(learner.settled(examples, wanted, seeds)).fit(examples, wanted, seeds)
    report, numbers = fitted.report, np.asarray(levels.double().numpy())
    duals = fitted.duals["labelled"].double().numpy()
    if not duals.any():
        costless = "every dual is 0: no label is costly to fit at this eps, and the ranking is that of the slacks"
        more = (*more, f"{costless}; lower eps, or pass eps='auto'")
    return DualReport(
        known_ids.of(rows),
        duals,
        _read_losses(fitted, examples) - numbers,
        numbers,
        report.dual_residual,
        (*aligned, *pool.notes, *parsed.notes, *more, *report.notes, *find_ties(duals)),
    )


def _keep_levels(learner: Learner) -> Learner:
    """A linear model that keeps the ε that was asked for, also where no dual is positive."""
    if isinstance(learner, LinearLearner):
        return replace(learner, tighten=False)
    if isinstance(learner, AutoLearner) and learner.chosen is not None:
        candidate = learner.chosen.candidate
        kept = replace(candidate, learner=_keep_levels(candidate.learner))
        return replace(learner, chosen=learner.chosen._replace(candidate=kept))
    return learner


def _read_losses(fitted: Fitted, examples: Examples) -> FloatArray:
    """(n,) of the labels; by clones that have not seen them where the model memorises."""
    labels = examples.labels
    if fitted.held_out is not None:
        probabilities, predictions = fitted.held_out
    else:
        view = fitted.view(examples.source, examples.rows)
        probabilities, predictions = view.probabilities, view.predictions
    if fitted.task == "regression":
        return np.asarray(np.square((predictions.double().numpy() - labels) / TargetScale.of(labels).std))
    if probabilities is None:
        raise NoDuals("the model gives no probabilities, so the losses of its labels are not known; use one that does")
    chosen = probabilities.double().numpy()[np.arange(len(labels)), labels.astype(np.int64)]
    return np.asarray(-np.log(np.clip(chosen, LEAST_PROBABILITY, None)))
