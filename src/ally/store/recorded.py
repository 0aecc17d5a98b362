"""The plain values that a campaign records as JSON: read back through their forms, since the file may be anybody's.

Only what somebody relies on has a form; other entries pass as they are. Whatever does not fit is `StoreDamaged`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from ally.errors import StoreDamaged
from ally.json_form import find_misfit

Form: TypeAlias = Mapping[str, Any]
Label: Any = str | bool | int | float
MOST_CHARACTERS = 2**24
"""Of one value as text: as objects it takes up to twenty times as much memory."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)

COMPARISON: Form = {
    "labels": int,
    "active": float,
    "random": float,
    "gain": float,
    "low": float,
    "high": float,
    "evaluated_on": int,
}


class SuspectForm(TypedDict):
    row: int
    dual: float | None
    predicted: str | bool | int | float | None
    probability: float | None
    loss: NotRequired[float | None]


CHOICE: Form = {"name": str, "labels": int, "note": str, "weights": NotRequired[dict[str, float]]}
REPORT: Form = {
    "notes": list[str],
    "by": Literal["cv", "held-out"],
    "cold": str,
    "objective": {"name": str, "labels": int},
    "choice": CHOICE,
    "features": str,
    "suspects": list[SuspectForm],
    "begun": int,
    "seconds": float,
    "stages": dict[str, float],
    "error": str | None,
    "comparison": COMPARISON,
    "handed": int,
    "unencoded": int,
    "positive_duals": float | None,
}
WHY: Form = {
    "predicted": Label | None,
    "probability": float | None,
    "dual": float | None,
    "percentile": float | None,
    "cluster_size": float | None,
    "nearest_labelled": str | None,
    "near": list[str],
}
DETAILS: Mapping[str, Form] = {
    "training begun": {"seen": int},
    "training stage": {
        "begun": int,
        "stage": Literal["reading", "encoding", "choosing a learner", "training", "ranking", "measuring"],
        "share": float,
    },
    "classes": {
        "change": str,
        "old": list[Label],
        "new": Label | None,
        "numbers": list[int],
        "undoes": int,
        "before": list[Label] | None,
    },
    "note": {"sample": str, "annotator": str, "text": str, "key": str},
    "source": {"problems": list[str]},
    "unreadable": {"reasons": dict[str, str]},
    "adjudicated": {"samples": dict[str, int]},
}
"""By the kind of an event."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "training stage": ("begun", "stage", "share"),
    "classes": ("change", "old", "new", "numbers"),
    "note": ("sample", "annotator", "text"),
}


def read_report(text: str) -> dict[str, Any]:
    """What a training said of a model."""
    return read_entries(text, REPORT, "the report of a model")


def read_why(text: str | None) -> dict[str, Any] | None:
    """Why a sample was chosen."""
    return None if text is None else read_entries(text, WHY, "the reason for a sample")


def read_detail(kind: str, text: str) -> dict[str, Any]:
    """The details of an event."""
    detail = read_entries(text, DETAILS.get(kind, {}), f"the event {kind!r:.60}")
    missing = next((name for name in NEEDED.get(kind, ()) if name not in detail), None)
    if missing is not None:
        raise StoreDamaged(f"the event {kind!r} has no {missing!r}; the campaign is damaged: restore a backup")
    return detail


def read_receipt(text: str) -> tuple[int, ...]:
    """Numbers of the answers of a call."""
    numbers = read_value(text)
    if not isinstance(numbers, list) or find_misfit(numbers, list[int]) is not None:
        raise StoreDamaged("the receipt of a call is no list of numbers; the campaign is damaged: restore a backup")
    return tuple(numbers)


def read_value(text: str | None) -> Any:
    """A JSON value."""
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise StoreDamaged("a value on record is no text, or is too long; the campaign is damaged: restore a backup")
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise StoreDamaged(
            f"a value on record is not JSON ({error!s:.80}); the campaign is damaged: restore a backup"
        ) from error


def read_entries(text: str, forms: Form, name: str) -> dict[str, Any]:
    """An object whose entries with a form have that form."""
    entries = read_value(text)
    if not isinstance(entries, dict):
        raise StoreDamaged(f"{name} is not a JSON object; the campaign is damaged: restore a backup")
    for entry, form in forms.items():
        misfit = find_misfit(entries[entry], form, f"{name}: {entry}") if entry in entries else None
        if misfit is not None:
            raise StoreDamaged(f"{misfit}; the campaign is damaged: restore a backup")
    return entries
