"""Tasks of Label Studio: labels that were made there, and labels for it, as its JSON holds them.

A task is ``{"data": {...}, "annotations": [{"result": [...], "completed_by": ..., "was_cancelled": ...}]}``. A choice,
a number or a rating is a label; a cancelled annotation is a skip.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ally.data.export.answers import Answer
from ally.data.json_files import read_json
from ally.errors import DataError, IdError, LabelError
from ally.json_form import find_misfit
from ally.types import SKIP

VALUES = {"choices": "choices", "number": "number", "rating": "rating"}
"""By the type of a result, where its value is."""


OBJECTS = list[dict[str, Any]]


def read_tasks(path: Path) -> list[dict[str, Any]] | None:
    """The tasks of a file; None if it holds something else."""
    found = read_json(path, "utf-8", "export the project again, as JSON")
    if isinstance(found, list) and found and all(isinstance(task, dict) and "data" in task for task in found):
        for number, task in enumerate(found, start=1):
            _ensure_form(task, number, path)
        return found
    return None


def _ensure_form(task: Mapping[str, Any], number: int, path: Path) -> None:
    """Raises unless what is read of a task is where it should be; what else it holds does not matter."""
    annotations = task.get("annotations") or task.get("completions") or []
    fits = isinstance(task["data"], dict) and find_misfit(annotations, OBJECTS) is None
    results = [annotation.get("result") or [] for annotation in annotations] if fits else []
    if not fits or not all(
        find_misfit(some, OBJECTS) is None and all(isinstance(one.get("value") or {}, dict) for one in some)
        for some in results
    ):
        raise DataError(
            f"task {number} of {path} is not in the form of Label Studio; export the project again, as JSON"
        )


def tasks_as_answers(
    tasks: Sequence[Mapping[str, Any]], path: Path, id_column: str | None, known: Container[str] | None
) -> Iterator[Answer]:
    for number, task in enumerate(tasks, start=1):
        id = _id(task["data"], id_column, known)
        if id is None:
            raise IdError(
                f"task {number} of {path} names no sample: its data hold {', '.join(map(str, task['data']))}; say "
                "which of them is the id (--id-column)"
            )
        for annotation in task.get("annotations") or task.get("completions") or ():
            label = SKIP if annotation.get("was_cancelled") else _label(annotation.get("result") or (), number, path)
            if label is not None:
                yield Answer(id, label, _person(annotation.get("completed_by")), annotation.get("created_at"))


def _id(data: Mapping[str, Any], id_column: str | None, known: Container[str] | None) -> str | None:
    """The field that is named, or ``id``, or the one that holds a known id, perhaps at the end of a path."""
    for name in (id_column, "id"):
        if name is not None and name in data:
            return str(data[name])
    for value in data.values():
        if isinstance(value, str) and known is not None:
            parts = value.partition("?d=")[2].split("/") if "?d=" in value else value.split("/")
            tails = ("/".join(parts[start:]) for start in range(len(parts)))
            found = next((tail for tail in (value, *tails) if tail in known), None)
            if found is not None:
                return found
    return None


def _label(results: Iterable[Mapping[str, Any]], number: int, path: Path) -> Any:
    labels = []
    for result in results:
        kind = VALUES.get(str(result.get("type")))
        value = (result.get("value") or {}).get(kind) if kind else None
        labels += value if isinstance(value, list) else [] if value is None else [value]
    if len(labels) > 1:
        raise LabelError(
            f"task {number} of {path} has {len(labels)} labels ({', '.join(map(str, labels[:5]))}); several labels of "
            "one sample are not supported: keep one"
        )
    return labels[0] if labels else None


def _person(value: Any) -> str | None:
    if isinstance(value, Mapping):
        value = value.get("email") or value.get("username") or value.get("id")
    return None if value is None else str(value)


def as_tasks(
    answers: Iterable[Answer], shown: Mapping[str, Mapping[str, Any]], control: str = "label", source: str = "sample"
) -> list[dict[str, Any]]:
    """Tasks with one annotation for each answer; `shown` are the data of each sample by id."""
    tasks: dict[str, dict[str, Any]] = {}
    for answer in answers:
        data = {"id": answer.id, **{name: value for name, value in shown.get(answer.id, {}).items() if name != "id"}}
        task = tasks.setdefault(answer.id, {"data": data, "annotations": []})
        annotation: dict[str, Any] = {"result": [], "was_cancelled": answer.label is SKIP}
        if answer.annotator is not None:
            annotation["completed_by"] = {"email": answer.annotator}
        if answer.at is not None:
            annotation["created_at"] = answer.at
        if answer.label is not SKIP:
            number = isinstance(answer.label, float)
            kind, value = ("number", answer.label) if number else ("choices", [str(answer.label)])
            annotation["result"] = [
                {"from_name": control, "to_name": source, "type": kind, "value": {VALUES[kind]: value}}
            ]
        task["annotations"].append(annotation)
    return list(tasks.values())
