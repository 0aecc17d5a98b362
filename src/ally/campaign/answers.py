"""Checks on answers before they are recorded: is each valid in this campaign, and does it look like a typo?"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ally.campaign.settings import Settings
from ally.data import Answer, check_answers
from ally.data.export.answers import as_answers, reads
from ally.data.source_labels import ensure_storable, spell_like_first
from ally.errors import AnswerError
from ally.store import Label, NewAnswer, Store, StoredAnswer
from ally.store.validation import LATEST
from ally.types import SKIP

ENOUGH = 20
"""How many distinct numbers are needed before an outlier is reported."""
FAR = 5.0
"""How far beyond the quartiles, in interquartile ranges."""
RECENT = 5000
"""How many recent answers a new number is compared with."""


def new_answers(
    answers: Mapping[str, Any] | Sequence[Answer], settings: Settings, known: Mapping[str, Any]
) -> list[NewAnswer]:
    """Answers in the store's form; raises at the first invalid one. `known` are the labels by their written form."""
    if not isinstance(answers, Mapping) and not (
        isinstance(answers, Sequence) and all(isinstance(one, Answer) for one in answers)
    ):
        raise AnswerError(f"the answers are {answers!r:.100}; pass labels by id, such as {{'a.jpg': 'cat'}}")
    first = dict(known) if settings.task == "classification" and settings.classes is None else {}
    given = as_answers(answers)
    for answer in given:
        ensure_storable(answer)
    possible = check_answers(given, classes=settings.classes, task=settings.task)
    checked = [spell_like_first(one, settings.task, settings.classes, first) for one in possible]
    if not checked:
        raise AnswerError("there are no answers; pass at least one, such as {'a.jpg': 'cat'}")
    (id, _), times = Counter((answer.id, answer.annotator) for answer in checked).most_common(1)[0]
    if times > 1:
        raise AnswerError(f"the sample {id!r} is answered {times} times by one annotator; keep one answer")
    return [_new(answer) for answer in checked]


def _new(answer: Answer) -> NewAnswer:
    at = None if answer.at is None else _seconds(answer)
    if answer.label is SKIP:
        return NewAnswer(answer.id, kind="skip", at=at, annotator=answer.annotator)
    return NewAnswer(answer.id, answer.label, at=at, annotator=answer.annotator)


def _seconds(answer: Answer) -> float:
    try:
        found = datetime.fromisoformat(str(answer.at).replace("Z", "+00:00"))
    except ValueError:
        raise AnswerError(
            f"the time {answer.at!r} of the answer to {answer.id!r} is not a time; "
            "write it like 2025-03-01T12:00:00+00:00, or leave it out"
        ) from None
    at = found.replace(tzinfo=found.tzinfo or UTC).timestamp()
    if not 0 <= at < LATEST:
        raise AnswerError(
            f"the time {answer.at} of the answer to {answer.id!r} is not between 1970 and 9998; correct it, or leave "
            "it out"
        )
    return at


class Vocabulary:
    """The distinct labels of a campaign by their written form, first spelling first. Reads only new answers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first: dict[str, Any] = {}
        self._seen = 0
        self._lock = threading.Lock()

    def of(self, settings: Settings) -> Mapping[str, Any]:
        """For campaigns where any label is a class; empty if classes are declared or labels are numbers."""
        return self.known() if settings.task == "classification" and settings.classes is None else {}

    def known(self) -> Mapping[str, Any]:
        with self._lock:
            values, self._seen = self._store.answers.values(self._seen)
            if values:
                first = dict(self._first)
                for value in values:
                    first.setdefault(reads(value), value)
                self._first = first
            return self._first


def said(answer: StoredAnswer | Label) -> Any:
    """The label, or `ally.SKIP`."""
    return SKIP if answer.kind == "skip" else answer.value


def likely_slips(settings: Settings, known: Mapping[str, Any], answers: Mapping[str, Any]) -> list[str]:
    """One sentence each; `known` are recorded labels by their written form, and `answers`, by id, are not recorded
    yet."""
    told = {id: label for id, label in answers.items() if label is not SKIP}
    if settings.task == "regression":
        return _far_off(known, told)
    return [] if settings.classes is not None else _alike(known, told)


def _alike(known: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """New classes that differ from another only in spelling."""
    first: dict[str, str] = {}
    for text in (*known, *map(reads, told.values())):
        first.setdefault(_plain(text), text)
    odd: dict[str, str] = {}
    for id, label in told.items():
        other = first[_plain(reads(label))]
        if other != reads(label) and reads(label) not in known:
            odd.setdefault(
                other, f"{label!r} (of {id!r}) is a different class from {other!r}; if that is a typo, answer again"
            )
    return list(odd.values())


def _plain(text: str) -> str:
    """Lower case, with other separators between words replaced by spaces."""
    return " ".join(re.sub(r"(?<=\w)[-_]+(?=\w)", " ", text.casefold()).split())


def _far_off(known: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """Numbers far from all others."""
    try:
        given = {id: float(value) for id, value in told.items()}
    except (TypeError, ValueError, OverflowError):
        return []  # it will be refused with its reason
    if len(known) < ENOUGH:
        return []
    low, high = np.quantile([float(value) for value in known.values()], [0.25, 0.75])
    reach = FAR * (high - low)
    return [
        f"{value:g} (of {id!r}) is far from the earlier numbers (half of the distinct ones lie between {low:g} "
        f"and {high:g}); if that is a typo, answer again"
        for id, value in given.items()
        if reach and not low - reach <= value <= high + reach
    ]


def compared_with(store: Store, settings: Settings, vocabulary: Vocabulary, last: int) -> Mapping[str, Any]:
    """Labels up to answer number `last` to compare new ones with, by their written form."""
    return vocabulary.of(settings) if settings.task == "classification" else recent_values(store, last)


def recent_values(store: Store, last: int) -> dict[str, Any]:
    """Labels given shortly before answer number `last`, by their written form."""
    recent, _ = store.answers.values(max(0, last - RECENT))
    return {reads(value): value for value in recent}
