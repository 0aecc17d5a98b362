"""Whether labels are classes or numbers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ally.data.tables.columns import as_number
from ally.data.task_rule import decide_task
from ally.errors import DataError
from ally.types import AnyArray, Task

if TYPE_CHECKING:
    import pandas as pd


def decide(labels: pd.Series[Any], wanted: Task | Literal["auto"] = "auto") -> tuple[Task, AnyArray, str]:
    """The task, the labels (n,) and a sentence about the decision, which is that of `decide_task` unless a task is
    `wanted`."""
    kind = getattr(labels.dtype, "kind", "O")
    distinct = labels.nunique()
    if distinct < 2:
        raise DataError(f"the target is {labels.tolist()[0]!r} in every row; at least two different values are needed")
    if kind in "fiu":
        values = labels.to_numpy(dtype=np.float64)
        if not np.isfinite(values).all():
            raise DataError(f"the target holds {values[~np.isfinite(values)][0]}; give finite numbers")
        whole = bool(np.all(values == np.floor(values))) and float(np.abs(values).max(initial=0.0)) < 2**53
        classes: AnyArray = values.astype(np.int64) if whole else values
    elif wanted == "regression":
        odd = next((value for value in labels if isinstance(value, bool) or not _is_number(value)), labels.iloc[0])
        raise DataError(f"the target holds {odd!r}, which is not a number; regression needs numbers")
    else:
        classes = labels.to_numpy(dtype=bool) if kind == "b" else np.asarray([str(value) for value in labels])
    if wanted == "auto":
        task, note = decide_task(Counter(classes.tolist()))
    else:
        task, note = wanted, f"task: {wanted}, as you say; the target has {distinct} different values"
    return task, values if task == "regression" else classes, note


def _is_number(value: Any) -> bool:
    number = as_number(value)
    return number is not None and not np.isnan(number)
