r"""scikit-learn estimators whose constrained problem is solved to optimality: logistic and ridge regression.

Both minimise a convex loss plus the squared norm of their weights, so :mod:`ally.constrained.convex` finds weights and
duals together, instead of training the estimator again for every move of λ. The solution is written into the user's own
estimator, which predicts with it as if it had been fitted with the weights 1 + λ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.class_weight import compute_sample_weight

from ally.constrained.convex import PerSampleLoss, Solution, cross_entropy, squared_error
from ally.learning.losses import TargetScale
from ally.types import AnyArray, FloatArray

SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")
"""Solvers of logistic regression that leave the intercept free; liblinear penalises it."""


@dataclass(frozen=True)
class ExactForm:
    """An estimator's problem in the terms of the exact solver."""

    loss: PerSampleLoss
    penalty: float
    """Times the sum of the sample weights: it stands before ``||W||² / 2`` where losses are averaged."""
    weights: FloatArray | None = None
    """(n,) of the samples, by their classes: of their losses and of their constraints. None if all are 1."""

    def write_into(self, estimator: Any, weights: FloatArray, intercept: FloatArray, scale: TargetScale) -> None:
        """Makes a fitted estimator predict by weights (d, K) and intercepts (K,) of its features; those of numbers
        belong to standardised targets."""
        if self.loss is squared_error:
            estimator.coef_ = weights[:, 0] * scale.std
            estimator.intercept_ = float(intercept[0] * scale.std + scale.mean)
        elif len(intercept) == 2:
            estimator.coef_ = (weights[:, 1] - weights[:, 0])[None]
            estimator.intercept_ = np.asarray([intercept[1] - intercept[0]])
        else:
            estimator.coef_, estimator.intercept_ = np.ascontiguousarray(weights.T), np.asarray(intercept)


def find_exact_form(estimator: Any, labels: AnyArray) -> ExactForm | None:
    """The exact form of the last step of a pipeline, for the labels it gets; None if its own problem is another."""
    if type(estimator) is LogisticRegression:
        classes = len(np.unique(labels))
        plain = estimator.penalty in ("l2", "deprecated") and not estimator.l1_ratio
        free = estimator.fit_intercept and not estimator.dual and estimator.solver in SOLVERS
        if not (plain and free and math.isfinite(estimator.C)) or classes < 2:
            return None
        weights = None
        if estimator.class_weight is not None:
            try:
                weights = compute_sample_weight(estimator.class_weight, labels)
            except ValueError:
                # What is wrong with it is said when the estimator is trained.
                return None
            if not weights.min() > 0:
                return None
        # Two classes: scikit-learn penalises the difference of their weights, the solver each of them.
        return ExactForm(cross_entropy, (2.0 if classes == 2 else 1.0) / estimator.C, weights)
    if type(estimator) is Ridge:
        usual = estimator.fit_intercept and not estimator.positive and np.ndim(estimator.alpha) == 0
        return ExactForm(squared_error, 2.0 * float(estimator.alpha)) if usual and estimator.alpha > 0 else None
    return None


def spread_over_features(design: Any, found: Solution) -> tuple[FloatArray, FloatArray]:
    """Weights (d, K) and intercepts (K,) of the features of a design, from those of its axes."""
    weights = design.features(found.weights)
    return weights, np.asarray(found.intercept - design.mean @ weights)
