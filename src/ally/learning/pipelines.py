"""Parts of a scikit-learn pipeline; names and inputs of estimators."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def last_step(estimator: Any) -> Any:
    """The estimator at the end of a pipeline; the estimator itself otherwise."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def first_steps(estimator: Any) -> Any:
    """The steps of a pipeline before its last; None if there are none."""
    return estimator[:-1] if isinstance(estimator, Pipeline) and len(estimator.steps) > 1 else None


def called(estimator: Any) -> str:
    return type(last_step(estimator)).__name__


def takes_nan(estimator: Any) -> bool:
    tags = getattr(estimator, "__sklearn_tags__", None)
    return bool(tags is not None and tags().input_tags.allow_nan)
