"""Parts of a scikit-learn pipeline; names and inputs of estimators."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
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
    """Whether it may be given NaN; a pipeline, if every step down to one that fills gaps may."""
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            if _fills_gaps(step):
                return True
            if step not in (None, "passthrough") and not takes_nan(step):
                return False
        return True
    if isinstance(estimator, ColumnTransformer):
        return all(isinstance(part, str) or takes_nan(part) for _, part, _ in estimator.transformers)
    tags = getattr(estimator, "__sklearn_tags__", None)
    return bool(tags is not None and tags().input_tags.allow_nan)


def _fills_gaps(step: Any) -> bool:
    if isinstance(step, Pipeline):
        return any(_fills_gaps(part) for _, part in step.steps)
    if isinstance(step, ColumnTransformer):
        return step.remainder != "passthrough" and all(_fills_gaps(part) for _, part, _ in step.transformers)
    return type(step).__module__.startswith("sklearn.impute")
