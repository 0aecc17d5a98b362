"""The answers on record: all answers ever given, the labels that count, disagreements, and export."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ally._renamed_arguments import renamed_arguments
from ally.campaign.agreement import agreement_of
from ally.campaign.answers import said
from ally.campaign.notes import in_a_line, notes
from ally.campaign.settings import current_settings
from ally.campaign.source import CampaignSource
from ally.campaign.values import Agreement
from ally.data import Answer, Shown, read_answers, write_answers, write_image_folder
from ally.data.export.answers import reads
from ally.data.export.label_studio import as_tasks
from ally.errors import IdError
from ally.files import write_whole
from ally.store import Store, StoredAnswer
from ally.types import SKIP

ADJUDICATED = "adjudicated"
"""The kind of event that records which samples were settled, and up to which answer."""


@dataclass(frozen=True, eq=False)
class AnswerRecord:
    """``campaign.answers``."""

    store: Store
    source: CampaignSource

    def all(self) -> Iterator[StoredAnswer]:
        """Every answer ever given, in order: who, when, what, for which query. Includes undone answers and undos."""
        return self.store.answers.all()

    def current(self, *, skips: bool = True) -> list[Answer]:
        """The labels that count, and the skips, with who gave them, when, and what people remarked, in the order of
        samples."""
        decided = self.store.answers.decided(current_settings(self.store).store_policy)
        rows = sorted(row for row, label in decided.items() if skips or label.kind == "label")
        remarks = {id: in_a_line(people) for id, people in notes(self.store).items()}
        return [
            Answer(id, said(decided[row]), decided[row].annotator, _written(decided[row].at), remarks.get(id))
            for row, id in zip(rows, self.store.samples.ids(rows), strict=True)
        ]

    def untold(self, answers: Mapping[str, Any]) -> list[str]:
        """Ids of answers that are not on record as someone's current answer, and would be lost with their file."""
        opinions = self.store.answers.opinions(self.store.samples.rows(_known(self.store, list(answers))))
        told = {people[0].sample: {_reads(said(answer)) for answer in people} for people in opinions.values()}
        return [id for id, label in answers.items() if _reads(label) not in told.get(id, ())]

    def disagreements(self) -> dict[str, dict[str, Any]]:
        """By id, the label of each annotator, for samples they disagree on that are not settled yet."""
        labels = self.store.answers.labels(current_settings(self.store).store_policy)
        settled: dict[str, int] = {}
        for event in self.store.events():
            settled |= event.detail.get("samples", {}) if event.kind == ADJUDICATED else {}
        people = self.store.answers.opinions([row for row, label in labels.items() if label.disagree]).values()
        return {
            answers[0].sample: {answer.annotator: said(answer) for answer in answers}
            for answers in people
            if settled.get(answers[0].sample, 0) < max(answer.number for answer in answers)
        }

    def agreement(self) -> Agreement | None:
        """Krippendorff's alpha of the annotators, over all and for each class; None until two of them have labelled
        the same two samples."""
        return agreement_of(self.store, current_settings(self.store).task)

    @renamed_arguments(label_column="label")
    def read(
        self,
        path: str | Path,
        *,
        id_column: str | None = None,
        label: str | None = None,
        encoding: str = "utf-8",
        header: bool = True,
    ) -> list[Answer]:
        """The answers of a file, whose columns are ``id`` and ``label``, those of the campaign's source, or those
        named; the first two without a `header`. Nothing is recorded."""
        layout = current_settings(self.store).fingerprint.get("layout", {})
        own = {"id": layout.get("id"), "label": layout.get("label")}
        known = {sample.id for sample in self.store.samples.all()} if Path(path).suffix.lower() == ".json" else None
        return read_answers(
            path,
            id_column=id_column,
            label=label,
            own=own,
            known=known,
            encoding=encoding,
            header=header,
        )

    def export(self, path: str | Path, *, skips: bool = True, link: bool = False) -> int:
        """See `Campaign.export`."""
        answers, kind = self.current(skips=skips), Path(path).suffix.lower()
        if kind not in ("", ".json"):
            return write_answers(path, answers)
        samples = self.source.samples
        gone = set(samples.missing([answer.id for answer in answers]))
        if kind == "":
            return write_image_folder(path, [one for one in answers if one.id not in gone], samples, link=link)
        shown = {answer.id: _task_data(samples.show(answer.id)) for answer in answers if answer.id not in gone}
        write_whole(Path(path), json.dumps(as_tasks(answers, shown), ensure_ascii=False, indent=1).encode())
        return len(answers)


def _task_data(shown: Shown) -> dict[str, Any]:
    """What Label Studio shows for a sample."""
    data: dict[str, Any] = {str(name): value for name, value in shown.columns.items()}
    if shown.text is not None:
        data["text"] = shown.text
    if shown.path is not None:
        data["image"] = str(shown.path)
    return data


def _reads(label: Any) -> Any:
    return label if label is SKIP else reads(label)


def _known(store: Store, ids: list[str]) -> list[str]:
    """Those of the ids that the store knows."""
    try:
        store.samples.rows(ids)
    except IdError:
        half = len(ids) // 2
        return [*_known(store, ids[:half]), *_known(store, ids[half:])] if half else []
    return ids


def _written(at: float) -> str:
    """A time in the format used in files."""
    return datetime.fromtimestamp(at, UTC).isoformat()
