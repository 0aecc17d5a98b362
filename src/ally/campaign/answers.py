"""Answers: checked before they are recorded, likely slips among them, what counts of them, and the files they are kept
in."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ally.campaign.settings import Settings
from ally.errors import AnswerError, IdError
from ally.files import write_whole
from ally.sources import Answer, Samples, Shown, check_answers, write_answers, write_image_folder
from ally.sources.export.answers import as_answers, reads
from ally.sources.export.label_studio import as_tasks
from ally.store import NewAnswer, Store
from ally.store.validation import LATEST
from ally.types import SKIP

ADJUDICATED = "adjudicated"
"""The kind of event that tells which samples somebody settled, and by which answer at the latest."""
ENOUGH = 20
"""Different numbers told before anything is said about another."""
FAR = 5.0
"""Times the distance between the quartiles, beyond them."""
RECENT = 5000
"""Answers that a new number is compared with."""


def new_answers(
    answers: Mapping[str, Any] | Sequence[Answer], settings: Settings, known: Mapping[str, Any]
) -> list[NewAnswer]:
    """Answers as the store takes them; raises at the first that is not possible in this campaign. `known` are labels by
    how they read."""
    if not isinstance(answers, Mapping) and not (
        isinstance(answers, Sequence) and all(isinstance(one, Answer) for one in answers)
    ):
        raise AnswerError(f"the answers are {answers!r:.100}; pass labels by id, such as {{'a.jpg': 'cat'}}")
    first = dict(known) if settings.task == "classification" and settings.classes is None else {}
    given = as_answers(answers)
    for answer in given:
        _ensure_said(answer)
    checked = [_alike_first(one, settings, first) for one in _possible(given, settings)]
    if not checked:
        raise AnswerError("there are no answers; pass at least one, such as {'a.jpg': 'cat'}")
    (id, _), times = Counter((answer.id, answer.annotator) for answer in checked).most_common(1)[0]
    if times > 1:
        raise AnswerError(f"the sample {id!r} is answered {times} times by one annotator; keep one answer")
    return [_new(answer) for answer in checked]


def settled(answer: Answer, settings: Settings, first: dict[str, Any]) -> Answer:
    """The answer as this campaign has it: a possible label, and the one in `first` that reads like it, or it becomes
    the first."""
    _ensure_said(answer)
    (answer,) = _possible([answer], settings)
    return _alike_first(answer, settings, first)


def _possible(answers: Sequence[Answer], settings: Settings) -> list[Answer]:
    return check_answers(answers, classes=settings.classes, task=settings.task)


def _ensure_said(answer: Answer) -> None:
    if isinstance(answer.label, str) and not answer.label.strip():
        raise AnswerError(f"the label of {answer.id!r} is empty; give a class, or ally.SKIP to leave the sample out")


def _alike_first(answer: Answer, settings: Settings, first: dict[str, Any]) -> Answer:
    label = answer.label
    if label is SKIP or settings.task == "regression" or settings.classes is not None:
        return answer
    # Spaces around a label are slips of the finger, and a table with gaps keeps 3 as 3.0: neither is a class of its
    # own.
    label = (
        label.strip()
        if isinstance(label, str)
        else int(label)
        if isinstance(label, float) and label.is_integer()
        else label
    )
    return answer._replace(label=first.setdefault(reads(label), label))


def _new(answer: Answer) -> NewAnswer:
    at = None if answer.at is None else _seconds(answer)
    if answer.label is SKIP:
        return NewAnswer(answer.id, kind="skip", at=at, annotator=answer.annotator)
    return NewAnswer(answer.id, answer.label, at=at, annotator=answer.annotator)


def untold(store: Store, answers: Mapping[str, Any]) -> list[str]:
    """Ids of answers that are nobody's standing one."""
    opinions = store.opinions(store.rows(_known(store, list(answers))))
    said = {
        people[0].sample: {SKIP if answer.kind == "skip" else reads(answer.value) for answer in people}
        for people in opinions.values()
    }
    return [id for id, label in answers.items() if (label if label is SKIP else reads(label)) not in said.get(id, ())]


def _known(store: Store, ids: list[str]) -> list[str]:
    """Those of the ids that the store knows."""
    try:
        store.rows(ids)
    except IdError:
        half = len(ids) // 2
        return [*_known(store, ids[:half]), *_known(store, ids[half:])] if half else []
    return ids


def export(
    store: Store,
    settings: Settings,
    samples: Samples | None,
    path: str | Path,
    *,
    skips: bool = True,
    link: bool = False,
) -> int:
    """Writes the labels that count to a .csv, .jsonl or .parquet file, or the images to a folder per class; how many.

    `samples` is needed for a folder only.
    """
    answers = current(store, settings, skips=skips)
    if Path(path).suffix == "" and samples is not None:
        gone = set(samples.missing([answer.id for answer in answers]))
        return write_image_folder(path, [one for one in answers if one.id not in gone], samples, link=link)
    if Path(path).suffix.lower() == ".json" and samples is not None:
        gone = set(samples.missing([answer.id for answer in answers]))
        shown = {answer.id: task_data(samples.show(answer.id)) for answer in answers if answer.id not in gone}
        write_whole(Path(path), json.dumps(as_tasks(answers, shown), ensure_ascii=False, indent=1).encode())
        return len(answers)
    return write_answers(path, answers)


def task_data(shown: Shown) -> dict[str, Any]:
    """What Label Studio shows of a sample."""
    data: dict[str, Any] = {str(name): value for name, value in shown.columns.items()}
    if shown.text is not None:
        data["text"] = shown.text
    if shown.path is not None:
        data["image"] = str(shown.path)
    return data


def current(store: Store, settings: Settings, *, skips: bool = True) -> list[Answer]:
    """The labels that count, and the skips, in the order of samples."""
    decided = store.decided(settings.store_policy)
    rows = sorted(row for row, label in decided.items() if skips or label.kind == "label")
    found = []
    for row, id in zip(rows, store.ids(rows), strict=True):
        label = decided[row]
        found.append(Answer(id, SKIP if label.kind == "skip" else label.value, label.annotator, written(label.at)))
    return found


def written(at: float) -> str:
    """A time as files hold it."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def _seconds(answer: Answer) -> float:
    try:
        found = datetime.fromisoformat(str(answer.at).replace("Z", "+00:00"))
    except ValueError:
        raise AnswerError(
            f"the time {answer.at!r} of the answer to {answer.id!r} is none; write it like 2025-03-01T12:00:00+00:00, "
            "or leave it out"
        ) from None
    at = found.replace(tzinfo=found.tzinfo or UTC).timestamp()
    if not 0 <= at < LATEST:
        raise AnswerError(
            f"the time {answer.at} of the answer to {answer.id!r} is not between 1970 and 9998; correct it, or leave "
            "it out"
        )
    return at


class Vocabulary:
    """The different labels of a campaign by how they read, the first of those that read alike. Reads only what is new
    in the record."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first: dict[str, Any] = {}
        self._seen = 0
        self._lock = threading.Lock()

    def known(self) -> Mapping[str, Any]:
        with self._lock:
            values, self._seen = self._store.values(self._seen)
            if values:
                first = dict(self._first)
                for value in values:
                    first.setdefault(reads(value), value)
                self._first = first
            return self._first


def disagreements(store: Store, settings: Settings) -> dict[str, dict[str, Any]]:
    """By id, what each annotator says, where their labels differ."""
    differ = [row for row, label in store.labels(settings.store_policy).items() if label.disagree]
    settled: dict[str, int] = {}
    for event in store.events():
        settled |= event.detail.get("samples", {}) if event.kind == ADJUDICATED else {}
    found: dict[str, dict[str, Any]] = {}
    for people in store.opinions(differ).values():
        if settled.get(people[0].sample, 0) >= max(answer.number for answer in people):
            continue
        found[people[0].sample] = {
            answer.annotator: SKIP if answer.kind == "skip" else answer.value for answer in people
        }
    return found


def likely_slips(settings: Settings, known: Mapping[str, Any], answers: Mapping[str, Any]) -> list[str]:
    """One sentence each; `known` are labels on record by how they read, and `answers`, by id, are not on record yet."""
    told = {id: label for id, label in answers.items() if label is not SKIP}
    if settings.task == "regression":
        return _far_off(known, told)
    return [] if settings.classes is not None else _alike(known, told)


def _alike(known: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """New classes that differ from another only by how they are written."""
    first: dict[str, str] = {}
    for text in (*known, *map(reads, told.values())):
        first.setdefault(_plain(text), text)
    odd: dict[str, str] = {}
    for id, label in told.items():
        other = first[_plain(reads(label))]
        if other != reads(label) and reads(label) not in known:
            odd.setdefault(
                other, f"{label!r} (of {id!r}) is a class of its own beside {other!r}; if it is a slip, answer again"
            )
    return list(odd.values())


def _plain(text: str) -> str:
    """Without case, and with spaces for other marks between words."""
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
        f"{value:g} (of {id!r}) is far from the numbers told before (half of the different ones lie between {low:g} "
        f"and {high:g}); if it is a slip, answer again"
        for id, value in given.items()
        if reach and not low - reach <= value <= high + reach
    ]


def recent_values(store: Store, last: int) -> dict[str, Any]:
    """Labels given shortly before answer number `last`, by how they read."""
    recent, _ = store.values(max(0, last - RECENT))
    return {reads(value): value for value in recent}
