"""Reads answers from a file or a folder of images by class: checked, all of them or none."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ally._renamed_arguments import renamed_arguments
from ally.data.export.answers import Answer, plain_answer, reads
from ally.data.export.cells import read_label, read_text
from ally.data.export.label_studio import read_tasks, tasks_as_answers
from ally.data.identity import is_missing
from ally.data.paths import is_image, text_of
from ally.data.tables import BadRow, Rows, open_rows
from ally.data.tables.delimited import WITH_COMMA
from ally.errors import DataError, IdError, LabelError, UnknownClasses
from ally.types import SKIP, Task

LARGEST_TARGET = 1e150
"""Squares of larger numbers do not fit a float."""
SHOWN = 20
"""How many classes, and how many unknown labels, a message lists."""
FIRST = {"id": "column 1", "label": "column 2"}
"""Ids and labels of a file without a header."""
RECORD = ("kind", "undoes")
"""Columns of a whole record: of every answer ever given."""


@renamed_arguments(label_column="label")
def read_answers(
    path: str | Path,
    *,
    classes: Sequence[Any] | None = None,
    task: Task | None = None,
    known: Container[str] | None = None,
    id_column: str | None = None,
    label: str | None = None,
    own: Mapping[str, str | None] = {},
    encoding: str = "utf-8",
    header: bool = True,
) -> list[Answer]:
    """Answers of a table with the columns ``id`` and ``label``, of a .json file that Label Studio exported, or of a
    folder of folders of images.

    `id_column` and `label` name other columns; without them, and where a table has no column ``id`` or
    ``label``, those of `own` (``"id"`` and ``"label"``) serve, such as the columns that a campaign's source has.
    Without a `header`, the columns are ``column 1`` … and the first two of them hold ids and labels.

    A row with neither a label nor ``skip`` is not an answer yet and is left out. With `classes` a label must be one of
    them (and becomes
    it: ``"3 "`` becomes 3), with `task` ``"regression"`` a number, with `known` an id one of those.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(
            f"{path} does not exist; give a file with the columns id and label, or a folder with one folder per class"
        )
    if path.is_dir():
        found = _from_folder(path)
    elif path.suffix.lower() == ".json" and (tasks := read_tasks(path)) is not None:
        found = iter(tasks_as_answers(tasks, path, id_column or own.get("id"), known))
    else:
        rows = open_rows(path, encoding, header=header)
        if not header and not all(own.get(role) in rows.columns for role in FIRST):
            own = FIRST
        found = _from_table(path, rows, {"id": id_column, "label": label}, own)
    return check_answers(found, classes=classes, task=task, known=known)


def check_answers(
    answers: Iterable[Answer],
    *,
    classes: Sequence[Any] | None = None,
    task: Task | None = None,
    known: Container[str] | None = None,
) -> list[Answer]:
    """The answers, with labels as the campaign has them. Raises at the first that names an unknown id, and one error
    for all labels that are not possible."""
    found, numbers, strangers = [], [], []
    for answer in map(plain_answer, answers):
        if known is not None and answer.id not in known:
            raise IdError(
                f"the id {answer.id!r} is not known; nothing was read: correct the id, or add the sample first"
            )
        if answer.label is SKIP:
            found.append(answer)
            continue
        try:
            found.append(answer._replace(label=_label(answer, classes, task)))
        except UnknownClasses:
            strangers.append(answer)
        except LabelError as error:
            numbers.append((answer, error))
    if strangers:
        raise _unknown(strangers, classes or ())
    if len(numbers) == 1:
        raise numbers[0][1]
    if numbers:
        some = ", ".join(f"{answer.label!r} (of {answer.id!r})" for answer, _ in numbers[:SHOWN])
        more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
        raise LabelError(f"{len(numbers)} labels are no numbers to learn from: {some}{more}; correct them")
    return found


def _unknown(strangers: Sequence[Answer], classes: Sequence[Any]) -> UnknownClasses:
    """One error for all unknown labels, each with the closest class."""
    by_label: dict[Any, list[str]] = {}
    for answer in strangers:
        by_label.setdefault(answer.label, []).append(answer.id)
    known = ", ".join(map(repr, classes[:SHOWN]))
    if len(strangers) == 1:
        near = nearest_class(strangers[0].label, classes)
        meant = "" if near is None else f" (did you mean {near!r}?)"
        words = (
            f"the label of {strangers[0].id!r} is {strangers[0].label!r}, which is none of the classes {known}{meant}; "
            "correct it, or add the class"
        )
    else:
        lines = []
        for label, ids in by_label.items():
            near = nearest_class(label, classes)
            count = f"of {ids[0]!r}" if len(ids) == 1 else f"{len(ids)} labels, such as of {ids[0]!r}"
            lines.append(f"{label!r} ({count}{'' if near is None else f'; did you mean {near!r}?'})")
        more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        words = (
            f"{len(strangers)} labels are none of the classes {known}: {', '.join(lines[:SHOWN])}{more}; correct them, "
            "or add the classes"
        )
    error = UnknownClasses(words)
    error.labels = tuple(by_label)
    return error


def nearest_class(label: Any, classes: Sequence[Any], alike: float = 0.6) -> Any:
    """The class with the most similar spelling, or None if none is as much `alike`; 1 is the same but for the case."""
    written = {str(one).casefold(): one for one in classes}
    found = difflib.get_close_matches(str(label).casefold(), written, 1, alike)
    return written[found[0]] if found else None


def _label(answer: Answer, classes: Sequence[Any] | None, task: Task | None) -> Any:
    label = answer.label
    if task == "regression":
        if isinstance(label, str) and WITH_COMMA.fullmatch(label):
            label = float(label.replace(",", "."))
        if isinstance(label, bool) or not isinstance(label, (int, float)):
            raise LabelError(f"the label of {answer.id!r} is {label!r}; regression needs a finite number")
        if abs(label) > LARGEST_TARGET:
            raise LabelError(
                f"the label of {answer.id!r} is beyond {LARGEST_TARGET:g}, too large to learn from; correct it, or "
                "use another unit"
            )
        return float(label)
    if classes is None:
        return label
    same = [known for known in classes if known == label and type(known) is type(label)]
    alike = [known for known in classes if str(known).lower() == str(label).lower()] if isinstance(label, bool) else []
    alike = alike or [known for known in classes if reads(known) == reads(label)]
    if not same and not alike:
        raise UnknownClasses
    return (same or alike)[0]


def _from_table(
    path: Path, rows: Rows, given: Mapping[str, str | None], own: Mapping[str, str | None]
) -> Iterator[Answer]:
    named = {role: given[role] or _column(rows.columns, role, own) for role in ("id", "label")}
    lost = next((name for name in named.values() if name not in rows.columns), None)
    if lost is not None and not (lost == named["label"] and "skip" in rows.columns):
        raise DataError(
            f"{path} has no column {lost!r}; it needs id and label, and has {', '.join(rows.columns[:20])}: name them "
            "with id_column= (--id-column) and label= (--label), or say header=False (--no-header) if the "
            "first line holds an answer"
        )
    if all(name in rows.columns for name in RECORD):
        raise DataError(
            f"{path} is the full history of a campaign, with undone answers (it has the columns kind and undoes); use "
            "its current labels instead: ally export NAME labels.csv"
        )
    cells = rows.written
    for row in rows.scan():
        if isinstance(row, BadRow):
            raise DataError(f"{row.name} of {path}: {row.reason}; nothing was read")
        values = row.values
        if is_missing(values.get(named["id"])):
            raise IdError(f"{row.name} of {path} has no {named['id']}; nothing was read")
        id = read_text(str(values[named["id"]])) if cells else str(values[named["id"]])
        label = values.get(named["label"])
        skip = values.get("skip")
        if not is_missing(skip) and str(skip).lower() not in ("yes", "true", "1", "no", "false", "0"):
            raise DataError(f"{row.name} of {path} holds {skip!r} in column 'skip'; write yes, or leave it empty")
        if str(skip).lower() in ("yes", "true", "1"):
            if not is_missing(label):
                raise LabelError(
                    f"{row.name} of {path} holds the label {str(label)[:60]!r} for {id!r} and says skip; keep one "
                    "of the two"
                )
            label = SKIP
        elif isinstance(label, (list, dict)):
            raise LabelError(
                f"{row.name} of {path} holds the label {label!r}; a text, a number or a truth value is needed"
            )
        elif isinstance(label, float) and math.isnan(label) and path.suffix.lower() != ".parquet":
            raise LabelError(f"{row.name} of {path}: the label of {id!r} is NaN; leave it out, or skip the sample")
        elif label is None or (cells and label == "") or (isinstance(label, float) and math.isnan(label)):
            continue
        elif cells:
            label = read_label(str(label))
        yield Answer(id, label, _said(values.get("annotator"), cells), _said(values.get("at"), cells))


def _column(columns: Sequence[str], role: str, own: Mapping[str, str | None]) -> str:
    """The column called like its role, or the one that the campaign's source has for it."""
    other = own.get(role)
    return other if role not in columns and other is not None and other in columns else role


def _said(value: Any, cells: bool) -> str | None:
    if is_missing(value):
        return None
    return read_text(str(value)) if cells else str(value)


def _from_folder(folder: Path) -> Iterator[Answer]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        parts = Path(here).relative_to(folder).parts
        for name in sorted(files):
            if not is_image(name) or name.startswith("."):
                continue
            if not parts:
                raise DataError(
                    f"{folder} holds the image {name!r} outside the folders of the classes; move it into one"
                )
            stem, mark, _ = name.rpartition("%.")
            last = text_of(stem) if mark else text_of(name)
            yield Answer("/".join([*map(text_of, parts[1:]), last]), text_of(parts[0]))
