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
    everyone = np.arange(len(labels))
    lonely = np.zeros(len(labels), dtype=bool)
    if classes:
        _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
        lonely = counts[which] == 1
    measured = everyone[~lonely]
    count = min(folds_, len(measured))
    found: Splits = []
    for _ in range(repeats if count >= 2 else 0):
        fold = folds(labels[measured], count, rng)
        found += [(np.setdiff1d(everyone, measured[fold == k]), measured[fold == k]) for k in range(count)]
    return found
