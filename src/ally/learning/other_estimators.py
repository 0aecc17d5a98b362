"""What estimators of packages beside scikit-learn need: classes by number, floats of single precision.

XGBoost takes classes numbered from 0 without gaps, and so does a network of skorch, whose outputs are those numbers.
They get the numbers 0 … C' − 1 of the C' classes that have labels; what they answer is turned back. An estimator that
holds one of them, such as a search over its settings, is treated alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ally.learning.pipelines import last_step
from ally.types import AnyArray, FloatArray, IntArray

NUMBERED = ("xgboost", "skorch")
"""Packages whose classifiers take classes by number alone."""
BINARY_NETWORK = "NeuralNetBinaryClassifier"
"""The network of skorch that takes two classes as the numbers 0.0 and 1.0."""


def comes_from(estimator: Any, *packages: str) -> bool:
    """Whether its class, or one that this builds on, is of one of these packages."""
    return any(kind.__module__.partition(".")[0] in packages for kind in type(estimator).__mro__)


def takes_numbers_only(estimator: Any) -> bool:
    """Whether it, or an estimator that it holds, cannot take classes by name."""
    return any(comes_from(each, *NUMBERED) for each in _list_parts(estimator))


def holds_skorch(estimator: Any) -> bool:
    return any(comes_from(each, "skorch") for each in _list_parts(estimator))


def _list_parts(estimator: Any) -> tuple[Any, ...]:
    """The estimator, its settings and the estimators within."""
    return (estimator, *(estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()))


def is_skorch(estimator: Any) -> bool:
    """Whether it is a network of skorch, or a pipeline that ends with one."""
    return comes_from(last_step(estimator), "skorch")


def convert_samples(X: Any, estimator: Any) -> Any:
    """Samples of numbers as the estimator takes them: for a network of skorch, an array of single precision."""
    if not is_skorch(estimator):
        return X
    if hasattr(X, "iloc") and estimator is last_step(estimator):
        X = X.to_numpy(dtype=np.float32)
    return X.astype(np.float32) if isinstance(X, np.ndarray) and X.dtype == np.float64 else X


class GivenLabels(NamedTuple):
    """Labels as an estimator gets them, and the class number of each class as it calls them."""

    y: AnyArray
    numbers: Mapping[Any, int]


@dataclass(frozen=True, eq=False)
class LabelForm:
    """How an estimator gets its labels: `labels` (n,) are class numbers of `classes`, or targets.

    Class names stay names, so that settings by class work; whole numbers are int64 even if they came as floats, as they
    do beside NaN. Names of mixed types are given by number.
    """

    labels: FloatArray
    classes: tuple[Any, ...] | None
    estimator: Any = field(repr=False)
    numbered: bool = False
    """Whether classes are numbered from 0 without gaps."""

    @classmethod
    def of(
        cls, labels: FloatArray, classes: tuple[Any, ...] | None, estimator: Any, numbered: bool | None
    ) -> LabelForm:
        return cls(labels, classes, estimator, takes_numbers_only(estimator) if numbered is None else numbered)

    def give(self, places: IntArray | None = None) -> GivenLabels:
        """Those at some places, or all."""
        labels = self.labels if places is None else self.labels[places]
        last = last_step(self.estimator)
        if self.classes is None:
            targets = np.asarray(labels, dtype=np.float64)
            return GivenLabels(targets.astype(np.float32)[:, None] if is_skorch(last) else targets, {})
        numbers = np.asarray(labels, dtype=np.int64)
        if self.numbered:
            present, codes = np.unique(numbers, return_inverse=True)
            binary = any(kind.__name__ == BINARY_NETWORK for kind in type(last).__mro__)
            return GivenLabels(codes.astype(np.float32 if binary else np.int64), dict(enumerate(present.tolist())))
        names = np.asarray(self.classes)
        if len({type(name) for name in self.classes}) > 1:
            return GivenLabels(numbers, {number: number for number in range(len(self.classes))})
        if names.dtype.kind == "f" and np.equal(np.mod(names, 1), 0).all():
            names = names.astype(np.int64)
        return GivenLabels(names[numbers], {name: number for number, name in enumerate(names.tolist())})
