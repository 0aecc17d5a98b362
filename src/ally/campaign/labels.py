"""Labels in and out of a campaign: checked answers, and the files they are kept in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ally.campaign.settings import Settings
from ally.errors import AnswerError, IdError
from ally.sources import Answer, Samples, check_answers, write_answers, write_image_folder
from ally.sources.export.answers import as_answers, reads
from ally.store import NewAnswer, Store
from ally.store.texts import LATEST
from ally.types import SKIP


def new_answers(answers: Mapping[str, Any] | Sequence[Answer], settings: Settings, known: Mapping[str, Any]) -> list[NewAnswer]:
    """Answers as the store takes them; raises at the first that is not possible in this campaign. `known` are labels by how they read."""
    if not isinstance(answers, Mapping) and not (isinstance(answers, Sequence) and all(isinstance(one, Answer) for one in answers)):
        raise AnswerError(f"the answers are {answers!r:.100}; pass labels by id, such as {{'a.jpg': 'cat'}}")
    first = dict(known) if settings.task == "classification" and settings.classes is None else {}
    checked = [settled(answer, settings, first) for answer in as_answers(answers)]
    if not checked:
        raise AnswerError("there are no answers; pass at least one, such as {'a.jpg': 'cat'}")
    (id, _), times = Counter((answer.id, answer.annotator) for answer in checked).most_common(1)[0]
    if times > 1:
        raise AnswerError(f"the sample {id!r} is answered {times} times by one annotator; keep one answer")
    return [_new(answer) for answer in checked]


def settled(answer: Answer, settings: Settings, first: dict[str, Any]) -> Answer:
    """The answer as this campaign has it: a possible label, and the one in `first` that reads like it, or it becomes the first."""
    if isinstance(answer.label, str) and not answer.label.strip():
        raise AnswerError(f"the label of {answer.id!r} is empty; give a class, or ally.SKIP to leave the sample out")
    (answer,) = check_answers([answer], classes=settings.classes, task=settings.task)
    label = answer.label
    if label is SKIP or settings.task == "regression" or settings.classes is not None:
        return answer
    # Spaces around a label are slips of the finger, and a table with gaps keeps 3 as 3.0: neither is a class of its own.
    label = label.strip() if isinstance(label, str) else int(label) if isinstance(label, float) and label.is_integer() else label
    return answer._replace(label=first.setdefault(reads(label), label))


def _new(answer: Answer) -> NewAnswer:
    at = None if answer.at is None else _seconds(answer)
    if answer.label is SKIP:
        return NewAnswer(answer.id, kind="skip", at=at, annotator=answer.annotator)
    return NewAnswer(answer.id, answer.label, at=at, annotator=answer.annotator)


def untold(store: Store, answers: Mapping[str, Any]) -> list[str]:
    """Ids of answers that are nobody's standing one."""
    opinions = store.opinions(store.rows(_known(store, list(answers))))
    said = {people[0].sample: {SKIP if answer.kind == "skip" else reads(answer.value) for answer in people} for people in opinions.values()}
    return [id for id, label in answers.items() if (label if label is SKIP else reads(label)) not in said.get(id, ())]


def _known(store: Store, ids: list[str]) -> list[str]:
    """Those of the ids that the store knows."""
    try:
        store.rows(ids)
    except IdError:
        half = len(ids) // 2
        return [*_known(store, ids[:half]), *_known(store, ids[half:])] if half else []
    return ids


def export(store: Store, settings: Settings, samples: Samples | None, path: str | Path, *, skips: bool = True, link: bool = False) -> int:
    """Writes the labels that count to a .csv, .jsonl or .parquet file, or the images to a folder per class; how many.

    `samples` is needed for a folder only.
    """
    answers = current(store, settings, skips=skips)
    if Path(path).suffix == "" and samples is not None:
        return write_image_folder(path, answers, samples, link=link)
    return write_answers(path, answers)


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
    return datetime.fromtimestamp(at, timezone.utc).isoformat()


def _seconds(answer: Answer) -> float:
    try:
        found = datetime.fromisoformat(str(answer.at).replace("Z", "+00:00"))
    except ValueError:
        raise AnswerError(
            f"the time {answer.at!r} of the answer to {answer.id!r} is none; write it like 2025-03-01T12:00:00+00:00, or leave it out"
        ) from None
    at = found.replace(tzinfo=found.tzinfo or timezone.utc).timestamp()
    if not 0 <= at < LATEST:
        raise AnswerError(f"the time {answer.at} of the answer to {answer.id!r} is not between 1970 and 9998; correct it, or leave it out")
    return at
