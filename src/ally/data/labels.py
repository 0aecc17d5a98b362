"""Labels as the caller writes them, turned into class numbers or float targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ally.data.task_rule import decide_task
from ally.errors import LabelError
from ally.types import NULL, AnyArray, BoolArray, FloatArray, Task

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 5000
"""A learner keeps one probability for each sample and class."""
LARGEST = 1e150
"""The square of a larger target overflows."""


@dataclass(frozen=True)
class LabelCode:
    """How a label becomes a number: its place in `classes`, or the label itself for regression."""

    task: Task
    classes: AnyArray | None

    def encode(self, label: Any) -> float:
        """The number of one label. Raises on an undeclared class and on a non-finite target."""
        label = _plain(label)
        if self.classes is None:
            try:
                value = float(label)
            except (TypeError, ValueError):
                raise LabelError(f"label {label!r} is not a number; regression targets must be numbers") from None
            if not abs(value) <= LARGEST:
                raise LabelError(
                    f"label {value} is not finite or too large; give a target below {LARGEST:g}, or ally.SKIP to "
                    "leave it out"
                )
            return value
        if label is None or label != label:
            raise LabelError(f"label {label!r} is empty; give a class, or ally.SKIP to leave the sample out")
        try:
            return float(self._numbers[label])
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.classes.tolist()[:10]))
            raise LabelError(
                f"label {label!r} is not one of the {len(self.classes)} classes ({known}); add it to the classes"
            ) from None

    def decode(self, values: FloatArray) -> AnyArray:
        """Labels from class numbers (or targets as they are)."""
        return np.asarray(values) if self.classes is None else self.classes[np.asarray(values, dtype=np.int64)]

    def extended(self, labels: Iterable[Any]) -> LabelCode:
        """The code extended by classes that are new in `labels`. They are appended, so existing numbers stay valid."""
        assert self.classes is not None
        known = self.classes.tolist()
        plain = [_plain(label) for label in labels]
        odd = next(
            (label for label in plain if label is None or not isinstance(label, Hashable) or label != label), None
        )
        if odd is not None or None in plain:
            raise LabelError(f"label {odd!r} cannot be a class; give a class, or ally.SKIP to leave the sample out")
        _check_no_infinity(plain)
        new = [label for label in dict.fromkeys(plain) if label not in self._numbers]
        if not new:
            return self
        if _whole(known) and not _whole(new) and not any(isinstance(label, str) for label in new):
            fraction = next(label for label in new if not _whole([label]))
            raise LabelError(
                f"label {fraction!r} has a fraction and the classes so far are whole numbers; for targets use "
                "task='regression'"
            )
        _found_classes([*known, *new])
        return LabelCode(self.task, _class_array([*known, *new]))

    @property
    def n_classes(self) -> int:
        return 0 if self.classes is None else len(self.classes)

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        assert self.classes is not None
        return {value: number for number, value in enumerate(self.classes.tolist())}


@dataclass(frozen=True)
class ParsedLabels:
    """The labels of a pool of n rows: `labels` (n,) are class numbers or targets, NaN where no label is `known`."""

    code: LabelCode
    known: BoolArray
    labels: FloatArray
    notes: tuple[str, ...] = ()


def parse_labels(
    y: Any,
    n: int,
    *,
    task: Task | Literal["auto"] = "auto",
    classes: Any = None,
    missing_label: Any = NULL,
) -> ParsedLabels:
    """Reads `y`: None, NaN and pandas.NA are missing labels, and so is `missing_label` if given.

    ``task="auto"`` is decided by `decide_task`, and noted.
    """
    if task not in ("auto", "classification", "regression"):
        raise LabelError.about("task", task, "; pass 'auto', 'classification' or 'regression'")
    series = _as_series(y, n)
    known: BoolArray = ~series.isna().to_numpy(dtype=bool)
    if missing_label is not NULL and not _is_null(missing_label):
        known &= (series != missing_label).fillna(False).to_numpy(dtype=bool)
    given = series[known].tolist()
    _check_no_infinity(given)

    declared = _declared_classes(classes)
    if declared is not None and task == "regression":
        raise LabelError("classes are declared and task='regression'; leave one out")
    notes: list[str] = []
    decided: Task = task if task != "auto" else _decide(given, declared, notes)
    if decided == "classification":
        found = declared if declared is not None else _found_classes(given)
        if len(found) > MOST_CLASSES:
            raise LabelError(
                f"there are {len(found)} classes, such as {_plain(found[0])!r}, and at most {MOST_CLASSES} can be "
                "learned: group them into fewer, or pass task='regression' (--task) if the labels are measurements"
            )
        code = LabelCode(decided, found)
    else:
        code = LabelCode(decided, None)
    labels = np.full(n, np.nan)
    labels[known] = [code.encode(label) for label in given]
    return ParsedLabels(code, known, labels, tuple(notes))


def _as_series(y: Any, n: int) -> pd.Series[Any]:
    import pandas as pd

    if y is None:
        return pd.Series([None] * n, dtype=object)
    if isinstance(y, pd.DataFrame):
        if y.shape[1] != 1:
            raise LabelError(f"y is a table with {y.shape[1]} columns; pass the one column that holds the labels")
        y = y.iloc[:, 0]
    if type(y).__module__.split(".")[0] == "torch":
        y = y.detach().cpu().numpy()
    values = y if isinstance(y, (pd.Series, np.ndarray)) else _as_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.reshape(-1)
    if values.ndim != 1:
        raise LabelError(
            f"y has shape {values.shape}; pass one label per row (several targets at once are not supported)"
        )
    if len(values) != n:
        raise LabelError(
            f"y has {len(values)} entries and X {n} rows; pass one label per row, NaN or None where unlabelled"
        )
    if isinstance(values, np.ndarray) and values.dtype.kind == "c":
        raise LabelError("y is complex. Complex data not supported: pass real targets or classes")
    return values.reset_index(drop=True) if isinstance(values, pd.Series) else pd.Series(values)


def _as_array(y: Any) -> AnyArray:
    if hasattr(y, "to_pandas"):
        return np.asarray(y.to_pandas(), dtype=object)
    if not hasattr(y, "__len__"):
        raise LabelError(f"y is a {type(y).__name__}; pass one label per row")
    values = list(y)
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _whole(labels: list[Any]) -> bool:
    """Whether all are whole numbers."""
    return bool(labels) and all(isinstance(label, (int, float)) and float(label).is_integer() for label in labels)


def _plain(label: Any) -> Any:
    """A numpy scalar as the Python value it equals."""
    return label.item() if isinstance(label, np.generic) else label


def _is_null(value: Any) -> bool:
    import pandas as pd

    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


def _check_no_infinity(given: list[Any]) -> None:
    bad = next((value for value in given if isinstance(value, (float, np.floating)) and np.isinf(value)), None)
    if bad is not None:
        raise LabelError(
            f"y holds {bad}: Input y contains infinity; give a finite target, or NaN where the label is unknown"
        )


def _declared_classes(classes: Any) -> AnyArray | None:
    if classes is None:
        return None
    if isinstance(classes, str) or not hasattr(classes, "__iter__"):
        raise LabelError.about("classes", classes, "; pass a list of all classes")
    values = [_plain(value) for value in classes]
    if len(values) < 2:
        raise LabelError.about("classes", values, f"declares {len(values)}; a classifier needs at least two")
    if not all(isinstance(value, Hashable) for value in values):
        raise LabelError.about("classes", values, "holds something that cannot be a class; use strings or numbers")
    if len(set(values)) != len(values):
        raise LabelError.about("classes", values, "repeats a class; list each once")
    return _class_array(values)


def _found_classes(given: list[Any]) -> AnyArray:
    try:
        return _class_array(sorted(set(given)))
    except TypeError:
        kinds = sorted({type(value).__name__ for value in given})
        raise LabelError(f"y mixes {' and '.join(kinds)}; use one type for all labels") from None


def _class_array(values: list[Any]) -> AnyArray:
    """An array of the classes, each unchanged: mixed types are not turned into strings."""
    if len({type(value) for value in values}) == 1 and type(values[0]) in (bool, int, float, str):
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _decide(given: list[Any], declared: AnyArray | None, notes: list[str]) -> Task:
    if declared is not None:
        notes.append(f"task: classification, {len(declared)} classes were declared")
        return "classification"
    if not given:
        notes.append("task: classification assumed, as there are no labels yet")
        return "classification"
    odd = next((label for label in given if not isinstance(label, Hashable)), None)
    if odd is not None:
        raise LabelError(f"Unknown label type: {type(odd).__name__} (such as {odd!r:.60}); pass one label per row")
    task, note = decide_task(Counter(given))
    notes.append(note)
    return task
