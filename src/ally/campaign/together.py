"""Answers of several people that arrive together: checked one by one, recorded with one flush."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ally.campaign.answers import likely_slips, new_answers
from ally.campaign.settings import Settings
from ally.campaign.values import Value
from ally.errors import InputError
from ally.store import ANYTHING, AnswerCall, Recorded, Store, StoredAnswer
from ally.types import SKIP


@dataclass(frozen=True)
class Given:
    """An answer as a page sends it; a label, or `ally.SKIP`. `expects` is the number of the annotator's own answer that
    the page shows, None for none; by default it does not matter."""

    id: str
    label: Any
    annotator: str
    key: str | None = None
    query: int | None = None
    expects: int | None = ANYTHING


@dataclass(frozen=True)
class Taken(Value):
    """An answer on disk. `before` is the label that stood, by `before_by`; `slip` what looks like a slip of the
    finger."""

    number: int
    repeated: bool
    before: Any = None
    before_by: str | None = None
    slip: str | None = None


def tell_together(
    store: Store,
    settings: Settings,
    given: Sequence[Given],
    now: float,
    known: Mapping[str, Any],
    compared: Mapping[str, Any],
) -> list[Taken | InputError]:
    """In the order given: what is on record now, or why it is not. `compared` are labels that a slip would differ
    from."""
    done: list[Taken | InputError | None] = []
    calls: list[AnswerCall] = []
    for one in given:
        try:
            (new,) = new_answers({one.id: one.label}, settings, known)
        except InputError as error:
            done.append(error)
        else:
            done.append(None)
            calls.append(AnswerCall(one.annotator, new, one.query, one.key, one.expects))
    recorded = iter(store.answer_together(calls, now, settings.opinions))
    found: list[Taken | InputError] = []
    for one, problem in zip(given, done, strict=True):
        outcome = problem if problem is not None else next(recorded)
        found.append(_taken(outcome, one, settings, compared) if isinstance(outcome, Recorded) else outcome)
    return found


def _taken(outcome: Recorded, one: Given, settings: Settings, compared: Mapping[str, Any]) -> Taken:
    slips = [] if outcome.repeated else likely_slips(settings, compared, {one.id: one.label})
    before = outcome.before
    return Taken(
        outcome.number,
        outcome.repeated,
        None if before is None else said(before),
        None if before is None else before.annotator,
        slips[0] if slips else None,
    )


def said(answer: StoredAnswer) -> Any:
    return SKIP if answer.kind == "skip" else answer.value
