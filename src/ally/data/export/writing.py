"""Writes answers to one file, completely or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ally.data.export.answers import FIELDS, Answer, as_answers
from ally.data.export.cells import label_cell, text_cell
from ally.data.paths import os_reason
from ally.errors import DataError, InputError, LabelError, MissingPart
from ally.files import replacing
from ally.types import SKIP

KINDS = (".csv", ".jsonl", ".parquet")


def write_answers(path: str | Path, answers: Iterable[Answer] | Mapping[str, Any]) -> int:
    """Writes a .csv, .jsonl or .parquet file that `read_answers` reads back, without its notes; returns how many
    answers.

    The columns are ``id`` and ``label``, and ``skip``, ``annotator``, ``at``, ``note`` where any answer has them.
    """
    path = Path(path)
    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
    if path.suffix.lower() not in writers:
        raise InputError(f"{path} has the ending {path.suffix or '(none)'!r}; labels are written to {', '.join(KINDS)}")
    found = as_answers(answers)
    used = {"id", "label"} | {name for name in FIELDS for answer in found if _field(answer, name) is not None}
    writers[path.suffix.lower()](path, found, [name for name in FIELDS if name in used])
    return len(found)


def _field(answer: Answer, name: str) -> Any:
    if name == "label":
        return None if answer.label is SKIP else answer.label
    if name == "skip":
        return True if answer.label is SKIP else None
    return getattr(answer, name)


def _write_csv(path: Path, answers: Sequence[Answer], fields: list[str]) -> None:
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as out:
        out.write(",".join(fields) + "\n")
        out.writelines(",".join(_quoted(_cell(answer, name)) for name in fields) + "\n" for answer in answers)


def _quoted(cell: str) -> str:
    """The csv module leaves a lone CR unquoted when lines end with LF, and then cannot read it back."""
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\r\n') else cell


def _cell(answer: Answer, name: str) -> str:
    value = _field(answer, name)
    if value is None:
        return ""
    return label_cell(value) if name == "label" else "yes" if name == "skip" else text_cell(value)


def _write_jsonl(path: Path, answers: Sequence[Answer], fields: list[str]) -> None:
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as out:
        for answer in answers:
            values = {name: value for name in fields if (value := _field(answer, name)) is not None}
            out.write(json.dumps(values, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, answers: Sequence[Answer], fields: list[str]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingPart("reading and writing .parquet needs pyarrow: pip install 'ally-learn[parquet]'") from error
    kinds = {type(answer.label) for answer in answers if answer.label is not SKIP}
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise LabelError(
            f"the labels are {names}, and a column of Parquet has one type; make them alike, or export to .jsonl"
        )
    try:
        columns = {name: pyarrow.array([_field(answer, name) for answer in answers]) for name in fields}
        table = pyarrow.table(columns)
    except (pyarrow.ArrowException, OverflowError) as error:
        raise LabelError(f"the labels cannot be written as Parquet ({error}); export to .jsonl") from error
    with whole_file(path) as partial:
        pyarrow.parquet.write_table(table, partial)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path next to `path`; it replaces `path` on success and is removed otherwise."""
    try:
        with replacing(path) as aside:
            yield aside
    except UnicodeEncodeError as error:
        raise LabelError(
            f"{error.object[:60]!r} is not valid Unicode and cannot be written to {path}; correct it"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be written ({os_reason(error)}); the old file is unchanged") from error
