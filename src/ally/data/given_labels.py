"""Labels that came with a source: several in one, marks for none, and those of an array."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.export.answers import reads
from ally.data.identity import is_missing
from ally.data.tables.columns import NOTHING, as_number
from ally.data.task_rule import decide_task
from ally.errors import DataError, LabelError
from ally.types import AnyArray

SEPARATORS = (";", "|", ",")


def ensure_single(labels: Iterable[Any], place: object) -> None:
    """Refuse labels that join others, such as ``"a;b"`` beside ``"a"`` and ``"b"``."""
    texts = {label.strip() for label in labels if isinstance(label, str)}
    for text in sorted(texts):
        for mark in SEPARATORS:
            parts = [part.strip() for part in text.split(mark)]
            if len(parts) > 1 and all(part in texts for part in parts):
                raise LabelError(
                    f"the label {text!r} of {place} joins several classes, and a sample has one label here: keep one "
                    "of them; if it is a class of its own, declare all classes (classes=, --classes)"
                )


def mark_for_none(counts: Mapping[str, int]) -> str | None:
    """A sentence if -1 stands beside classes that are numbered from 0; `counts` are by how the labels read."""
    if "-1" not in counts or "0" not in counts or not all(text.lstrip("-").isdecimal() for text in counts):
        return None
    if min(map(int, counts)) < -1:
        return None
    return (
        f"{counts['-1']} of {sum(counts.values())} labels are -1, a class like the others; if it marks samples "
        "without a label, say missing_label=-1 (--missing-label=-1)"
    )


def agree_labels(labels: Sequence[Any], *, automatic: bool) -> list[Any]:
    """Labels that came with data as one type: as texts, if some are, since a file writes the class 3 as it writes the
    number. `automatic`: they decide the task."""
    known = Counter(label for label in labels if label is not None)
    if automatic:
        refuse_words_for_none(known)
    texts = any(isinstance(label, str) for label in known)
    return [reads(label) if texts and label is not None else label for label in labels]


def refuse_words_for_none(counts: Mapping[Any, int]) -> None:
    """Refuse numbers beside words that may mark samples without a label."""
    words = [label for label in counts if isinstance(label, str) and _is_no_number(label)]
    numbers = Counter({label: times for label, times in counts.items() if label not in words})
    if words and numbers and decide_task(numbers).task == "regression":
        raise LabelError(
            f"the labels are numbers, and {counts[words[0]]} of them {words[0]!r}; if that marks samples without a "
            f"label say missing_label={words[0]!r} (--missing-label={words[0]}), or task='classification' (--task) if "
            "all are classes"
        )


def _is_no_number(text: str) -> bool:
    """Whether a text says, among numbers, that there is none: NA, inf."""
    number = as_number(text)
    return text.strip() in NOTHING or (number is not None and not math.isfinite(number))


def is_marked(label: Any, missing_label: Any) -> bool:
    """Whether a label is the mark for none."""
    return missing_label is not None and str(label) == str(missing_label)


def unmarked(labels: Iterable[Any], missing_label: Any) -> list[Any]:
    """The labels, None in place of the mark."""
    return [None if is_marked(label, missing_label) else label for label in labels]


def array_labels(y: AnyArray, n: int, place: Path | str) -> list[Any]:
    """One label per row of an array, None where it is NaN or empty; whole numbers as such."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n,):
        raise DataError(
            f"y of {place} has shape {y.shape} and X has {n} rows; give one label per row (several labels of a sample "
            "are not supported)"
        )
    return plain_labels((y.astype(str) if y.dtype.kind == "S" else y).tolist())


def plain_labels(values: Iterable[Any]) -> list[Any]:
    """Labels as plain values, None where one is missing; floats as whole numbers, if all are."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    labels = [None if is_missing(value) else value for value in plain]
    known = [label for label in labels if label is not None]
    if any(isinstance(label, float) for label in known) and all(_is_whole(label) for label in known):
        return [None if label is None else int(label) for label in labels]
    return labels


def _is_whole(label: Any) -> bool:
    return isinstance(label, (int, float)) and not isinstance(label, bool) and float(label).is_integer()
