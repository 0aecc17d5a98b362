"""One answer about one sample, as files hold it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ally.errors import LabelError
from ally.types import SKIP

FIELDS = ("id", "label", "skip", "annotator", "at")


class Answer(NamedTuple):
    id: str
    label: Any
    """A text, a number or a truth value; or `ally.SKIP`."""
    annotator: str | None = None
    at: str | None = None
    """When, as the campaign writes it."""


def as_answers(answers: Iterable[Answer] | Mapping[str, Any]) -> list[Answer]:
    """Checked answers from answers, or from a mapping from ids to labels; numpy scalars become plain values."""
    given = [Answer(id, label) for id, label in answers.items()] if isinstance(answers, Mapping) else list(answers)
    return [answer._replace(label=plain_label(answer.label, answer.id)) for answer in given]


def plain_label(label: Any, id: str) -> Any:
    if label is SKIP:
        return label
    value = label.item() if hasattr(label, "item") and getattr(label, "ndim", None) == 0 else label
    if isinstance(value, float) and not math.isfinite(value):
        raise LabelError(f"the label of {id!r} is {value}; a target must be a finite number: leave the sample out, or skip it")
    if not isinstance(value, (str, bool, int, float)):
        raise LabelError(f"the label of {id!r} is {label!r} ({type(label).__name__}); a text, a number, a truth value or SKIP is needed")
    return value
