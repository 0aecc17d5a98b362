"""Whether labels are classes or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ally.errors import DataError
from ally.sources.rows.columns import as_number
from ally.types import AnyArray, Task

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 100
"""With more distinct whole numbers than this, the target is a quantity."""


def decide(labels: pd.Series[Any], wanted: Task | Literal["auto"] = "auto") -> tuple[Task, AnyArray, str]:
    """The task, the labels (n,) and a sentence about the decision.

    Unless a task is `wanted`, text, booleans and up to `MOST_CLASSES` distinct whole numbers are classes, and other
    numbers are regression targets.
    """
    kind = getattr(labels.dtype, "kind", "O")
    distinct = labels.nunique()
    if distinct < 2:
        raise DataError(f"the target is {labels.tolist()[0]!r} in every row; at least two different values are needed")
    if kind in "fiu":
        values = labels.to_numpy(dtype=np.float64)
        if not np.isfinite(values).all():
            raise DataError(f"the target holds {values[~np.isfinite(values)][0]}; give finite numbers")
        whole = bool(np.all(values == np.floor(values))) and float(np.abs(values).max(initial=0.0)) < 2**53
        if wanted == "regression" or (wanted == "auto" and (not whole or distinct > MOST_CLASSES)):
            return "regression", values, f"the target is a number with {distinct} different values: regression"
        classes: AnyArray = values.astype(np.int64) if whole else values
    elif wanted == "regression":
        odd = next((value for value in labels if isinstance(value, bool) or not _is_number(value)), labels.iloc[0])
        raise DataError(f"the target holds {odd!r}, which is not a number; regression needs numbers")
    else:
        classes = labels.to_numpy(dtype=bool) if kind == "b" else np.asarray([str(value) for value in labels])
    return "classification", classes, f"the target has {distinct} different values: classification"


def _is_number(value: Any) -> bool:
    number = as_number(value)
    return number is not None and not np.isnan(number)
