"""Labels in and out of a campaign: checked answers, and the files they are kept in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ally.campaign.settings import Settings
from ally.errors import AnswerError
from ally.sources import Answer, Samples, check_answers, write_answers, write_image_folder
from ally.sources.export.answers import as_answers
from ally.store import NewAnswer, Store
from ally.types import SKIP


def new_answers(answers: Mapping[str, Any] | Iterable[Answer], settings: Settings) -> list[NewAnswer]:
    """Answers as the store takes them; raises at the first that is not possible in this campaign."""
    checked = check_answers(map(_trimmed, as_answers(answers)), classes=settings.classes, task=settings.task)
    if not checked:
        raise AnswerError("there are no answers; pass at least one, such as {'a.jpg': 'cat'}")
    id, times = Counter(answer.id for answer in checked).most_common(1)[0]
    if times > 1:
        raise AnswerError(f"the sample {id!r} is answered {times} times by one annotator; keep one answer")
    return [_new(answer) for answer in checked]


def _trimmed(answer: Answer) -> Answer:
    """Spaces around a label are slips of the finger, not classes of their own."""
    if not isinstance(answer.label, str):
        return answer
    label = answer.label.strip()
    if not label:
        raise AnswerError(f"the label of {answer.id!r} is empty; give a class, or ally.SKIP to leave the sample out")
    return answer._replace(label=label)


def _new(answer: Answer) -> NewAnswer:
    at = None if answer.at is None else _seconds(answer)
    if answer.label is SKIP:
        return NewAnswer(answer.id, kind="skip", at=at)
    return NewAnswer(answer.id, answer.label, at=at)


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
    labels = store.labels(settings.policy)
    skipped = store.skips(settings.policy) if skips else set()
    rows = sorted({*labels, *skipped})
    found = []
    for row, id in zip(rows, store.ids(rows), strict=True):
        label = labels.get(row)
        found.append(Answer(id, SKIP) if label is None else Answer(id, label.value, label.annotator, written(label.at)))
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
    if at < 0:
        raise AnswerError(f"the time {answer.at} of the answer to {answer.id!r} is before 1970; correct it, or leave it out")
    return at
