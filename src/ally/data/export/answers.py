"""One answer about one sample, as stored in files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ally.data.export.cells import DIGITS
from ally.errors import IdError, LabelError
from ally.types import SKIP

FIELDS = ("id", "label", "skip", "annotator", "at", "note")
LARGEST_WHOLE = 10**DIGITS


class Answer(NamedTuple):
    id: str
    label: Any
    """A text, a number or a truth value; or `ally.SKIP`."""
    annotator: str | None = None
    at: str | None = None
    """When, as the campaign writes it."""
    note: str | None = None
    """What people remarked; written, and not read back: a column of this name may be the user's own."""


def as_answers(answers: Iterable[Answer] | Mapping[str, Any]) -> list[Answer]:
    """Checked answers from answers, or from a mapping from ids to labels; numpy scalars become plain values."""
    given = [Answer(id, label) for id, label in answers.items()] if isinstance(answers, Mapping) else answers
    return [plain_answer(answer) for answer in given]


def plain_answer(answer: Answer) -> Answer:
    """The answer with a label that every file and store can hold; raises if that is impossible."""
    if isinstance(answer.id, str) and not _is_unicode(answer.id):
        raise IdError(f"the id {answer.id!r} is not valid Unicode (a text in another encoding?); correct it")
    return answer._replace(label=plain_label(answer.label, answer.id))


def plain_label(label: Any, id: str) -> Any:
    if label is SKIP:
        return label
    value = label.item() if hasattr(label, "item") and getattr(label, "ndim", None) == 0 else label
    if not isinstance(value, (str, bool, int, float)):
        raise LabelError(
            f"the label of {id!r} is {label!r} ({type(label).__name__}); a text, a number, a truth value or SKIP is "
            "needed"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise LabelError(
            f"the label of {id!r} is {value}; a target must be a finite number: leave it empty, or skip the sample"
        )
    if isinstance(value, int) and abs(value) >= LARGEST_WHOLE:
        raise LabelError(
            f"the label of {id!r} is a whole number of more than {DIGITS} digits; correct it, or make it a text"
        )
    if isinstance(value, str) and not _is_unicode(value):
        raise LabelError(
            f"the label of {id!r} is {value!r}, which is not valid Unicode (a text in another encoding?); correct it"
        )
    return value


def reads(label: Any) -> str:
    """The written form of a label: without surrounding spaces, and with 3.0 as 3, since a table with gaps stores 3 as
    3.0."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label).strip()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
