"""Repeated stratified cross-validation: which labelled samples to train on and which to measure on."""

from __future__ import annotations

import numpy as np

from ally.learning.calibration import folds
from ally.types import FloatArray, IntArray

Splits = list[tuple[IntArray, IntArray]]


def repeated_splits(
    labels: FloatArray, folds_: int, repeats: int, rng: np.random.Generator, *, classes: bool
) -> Splits:
    """Positions to train on and to measure on, `folds_` times `repeats` of them.

    Every class, or the range of the targets, is spread evenly. With `classes`, the only label of a class is always
    trained on and never measured on: otherwise the model could not know the class.
    """
    everyone, measured = np.arange(len(labels)), _measurable(labels, classes)
    count = min(folds_, len(measured))
    found: Splits = []
    for _ in range(repeats if count >= 2 else 0):
        fold = folds(labels[measured], count, rng)
        found += [(np.setdiff1d(everyone, measured[fold == k]), measured[fold == k]) for k in range(count)]
    return found


def draw_held_out(labels: FloatArray, share: float, rng: np.random.Generator, *, classes: bool) -> IntArray:
    """Positions, ascending, of a share of the labels: at random, spread and with the only label of a class left out as
    in `repeated_splits`."""
    measured = _measurable(labels, classes)
    order = measured[np.lexsort((rng.random(len(measured)), labels[measured]))]
    count = min(round(share * len(labels)), len(measured))
    return np.sort(order[((np.arange(count) + rng.random()) * len(order) / max(1, count)).astype(np.int64)])


def _measurable(labels: FloatArray, classes: bool) -> IntArray:
    """Positions of all labels, or, with `classes`, of those that are not the only one of their class."""
    everyone = np.arange(len(labels))
    if not classes:
        return everyone
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return everyone[counts[which] > 1]
