"""The strength of a linear model's penalty, chosen by cross-validation on the labels.

The candidates are C = 4^k divided by the mean squared distance of a row from the mean, so that the grid does not depend
on the units of the features. The lowest error wins; among equal errors, the strongest penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ally.constrained.convex import Solution, cross_entropy, solve
from ally.types import FloatArray, IntArray

POWERS = range(-4, 11)
ROUGH = 0.02
"""Tolerance of the fits in a search: their mean loss is within about 0.0002 of the optimum."""
WORSE, OFTEN = 1.02, 2
"""For classification, the search ends when the error exceeds the best by this factor for that many weaker penalties in
a row."""

Split = tuple[IntArray, IntArray]
"""Positions to train on, and positions to measure on."""


class Strength(NamedTuple):
    """The C chosen and its cross-validated error: log loss, or mean squared error."""

    C: float
    error: float


def grid(spread: float) -> FloatArray:
    """Candidates for C, the strongest penalty first; `spread` is that of the design."""
    return np.asarray([4.0**power / (spread if spread > 0 else 1.0) for power in POWERS])


def logistic_strength(
    rows: FloatArray, labels: IntArray, classes: int, spread: float, splits: Sequence[Split]
) -> Strength:
    """For rows (n, r) of a design with class numbers (n,); the training part of each split contains every class."""
    best = Strength(float(grid(spread)[0]), np.inf)
    parts = [(rows[train], labels[train], rows[test], labels[test]) for train, test in splits]
    starts: list[Solution | None] = [None] * len(parts)
    worse = 0
    for C in grid(spread).tolist():
        total, count = 0.0, 0
        for number, (x, y, others, truth) in enumerate(parts):
            found = solve(x, y, cross_entropy, classes, 1 / (C * len(y)), start=starts[number], tolerance=ROUGH)
            starts[number] = found
            total += float(cross_entropy(found.outputs(others), truth).losses.sum())
            count += len(truth)
        error = total / max(1, count)
        worse = worse + 1 if error > WORSE * best.error else 0
        if error < best.error:
            best = Strength(C, error)
        if worse >= OFTEN:
            break
    return best


def ridge_strength(rows: FloatArray, targets: FloatArray, spread: float) -> Strength:
    """By the exact leave-one-out error of ridge regression; one decomposition serves all strengths."""
    n = len(rows)
    left, values, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    mean = float(targets.mean())
    projected = left.T @ (targets - mean)
    best = Strength(float(grid(spread)[0]), np.inf)
    for C in grid(spread).tolist():
        shrink = np.square(values) / (np.square(values) + 1 / (2 * C))
        leverage = np.square(left) @ shrink + 1 / n
        residual = targets - mean - left @ (shrink * projected)
        if float(leverage.max()) > 1 - 1e-10:
            break
        error = float(np.square(residual / (1 - leverage)).mean())
        if error < best.error:
            best = Strength(C, error)
    return best
