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
from ally.data.tables.parquet import pyarrow_parquet
from ally.errors import DataError, InputError, LabelError
from ally.files import replacing
from ally.types import SKIP


def write_answers(path: str | Path, answers: Iterable[Answer] | Mapping[str, Any]) -> int:
    """Writes a .csv, .jsonl or .parquet file that `read_answers` reads back, without its notes; returns how many
    answers.

    The columns are ``id`` and ``label``, and ``skip``, ``annotator``, ``at``, ``note`` where any answer has them.
    """
    path = Path(path)
    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
    if path.suffix.lower() not in writers:
        raise InputError(
            f"{path} has the ending {path.suffix or '(none)'!r}; labels are written to {', '.join(writers)}"
        )
    rows = [_as_row(answer) for answer in as_answers(answers)]
    used = {"id", "label", *(name for row in rows for name, value in row.items() if value is not None)}
    writers[path.suffix.lower()](path, rows, [name for name in FIELDS if name in used])
    return len(rows)


def _as_row(answer: Answer) -> dict[str, Any]:
    skip = answer.label is SKIP
    return answer._asdict() | {"label": None if skip else answer.label, "skip": skip or None}


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> None:
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as out:
        out.write(",".join(fields) + "\n")
        out.writelines(",".join(_quote(_to_cell(row[name], name)) for name in fields) + "\n" for row in rows)


def _quote(cell: str) -> str:
    """The csv module leaves a lone CR unquoted when lines end with LF, and then cannot read it back."""
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\r\n') else cell


def _to_cell(value: Any, name: str) -> str:
    if value is None:
        return ""
    return label_cell(value) if name == "label" else "yes" if name == "skip" else text_cell(value)


def _write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> None:
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as out:
        for row in rows:
            values = {name: row[name] for name in fields if row[name] is not None}
            out.write(json.dumps(values, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> None:
    parquet = pyarrow_parquet()
    import pyarrow

    kinds = {type(row["label"]).__name__ for row in rows if row["label"] is not None}
    if len(kinds) > 1:
        raise LabelError(
            f"the labels are {' and '.join(sorted(kinds))}, and a column of Parquet has one type; make them alike, or "
            "export to .jsonl"
        )
    try:
        table = pyarrow.table({name: pyarrow.array([row[name] for row in rows]) for name in fields})
    except (pyarrow.ArrowException, OverflowError) as error:
        raise LabelError(f"the labels cannot be written as Parquet ({error}); export to .jsonl") from error
    with whole_file(path) as partial:
        parquet.write_table(table, partial)


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
