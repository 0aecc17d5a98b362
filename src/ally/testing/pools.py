"""Small pools, plain and hostile, for the conformance suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ally.estimators import ConstrainedClassifier, ConstrainedRegressor
from ally.types import AnyArray, FloatArray, Task


@dataclass(frozen=True)
class Scene:
    """Samples, the labels shown (NaN elsewhere) and what else the query needs."""

    X: AnyArray
    y: AnyArray
    task: Task

    @property
    def free(self) -> set[int]:
        known = np.asarray([label is not None and label == label for label in self.y.tolist()])
        return set(np.flatnonzero(~known).tolist())

    def arguments(self, **more: Any) -> dict[str, Any]:
        """Arguments of `ally.query` for a small, quickly trained model."""
        settings: dict[str, Any] = {"hidden": (8,), "epochs": 4, "batch_size": 16}
        model = ConstrainedClassifier(**settings) if self.task == "classification" else ConstrainedRegressor(**settings)
        return {"task": self.task, "model": model, "random_state": 0, **more}


def blobs(task: Task, n: int = 60, labelled: int = 12, features: int = 4, seed: int = 0) -> Scene:
    """Three Gaussian classes, or a noisy linear target."""
    rng = np.random.default_rng(seed)
    number = np.arange(n) % 3
    X = rng.normal(size=(n, features)) + 2.0 * np.eye(3, features)[number]
    y: FloatArray = (
        number.astype(float) if task == "classification" else X @ rng.normal(size=features) + 0.1 * rng.normal(size=n)
    )
    y = y.copy()
    y[labelled:] = np.nan
    return Scene(X, y, task)
