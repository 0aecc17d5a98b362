"""Answers from a file, from standard input, or from ID=LABEL pairs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ally.errors import AllyError, AnswerError, InputError

if TYPE_CHECKING:
    from ally.data import Answer
    from ally.data.tables import Rows

STANDARD_INPUT = "-"


class Answers(NamedTuple):
    by_id: dict[str, Any]
    query: int | None
    """The query that all of them name, if they do."""
    adjudicates: bool = False
    """Whether the file lists samples that annotators differed about, and settles them."""


ReadFile: TypeAlias = "Callable[..., Sequence[Answer]]"


def read(words: Sequence[str], read_file: ReadFile, written: Mapping[str, Any] = {}) -> Answers:
    """The answers of a file, as `read_file` gives them, of standard input (``-``) or of words like ``a.jpg=cat``.
    `written` says how the file is written: its encoding and header."""
    files = [word for word in words if word == STANDARD_INPUT or "=" not in word or os.path.isfile(word)]
    if not words:
        raise InputError(
            "no answers given; give a file with the columns id and label, - for standard input, or ID=LABEL pairs"
        )
    if not files and written:
        raise InputError("--encoding and --no-header are for a file of answers; leave them out, or give one")
    if not files:
        return Answers(_pairs(words), None)
    if len(words) > 1:
        raise InputError(f"{files[0]!r} is not an ID=LABEL pair; give one file (or -), or give pairs only")
    if files[0] == STANDARD_INPUT:
        return _standard_input(read_file, written)
    if not os.path.exists(files[0]):
        raise InputError(f"{files[0]!r} is neither a file nor a pair such as {files[0]}=LABEL; correct it")
    return _file(Path(files[0]), read_file, written)


def _pairs(words: Sequence[str]) -> dict[str, Any]:
    """Split at the last ``=``: ids contain one more often than labels do."""
    from ally.data.export.cells import read_label

    found: dict[str, Any] = {}
    for word in words:
        id, _, label = word.rpartition("=")
        if not id or not label:
            raise AnswerError(f"{word!r} has no {'id' if not id else 'label'}; write ID=LABEL, such as a.jpg=cat")
        add(found, id, read_label(label))
    return found


def _file(path: Path, read_file: ReadFile, written: Mapping[str, Any]) -> Answers:
    from ally.data.tables import open_rows

    found: dict[str, Any] = {}
    for answer in read_file(path, **written):
        add(found, answer.id, answer.label)
    if not found:
        raise AnswerError(f"{path} holds no answers; fill in its column label, or write yes into a column named skip")
    rows = None if path.is_dir() else open_rows(path, **written)
    queries = set() if rows is None else _queries(rows, found)
    settles = rows is not None and "adjudicates" in rows.columns
    return Answers(found, queries.pop() if len(queries) == 1 else None, settles)


def add(found: dict[str, Any], id: str, label: Any) -> None:
    if id in found and (type(found[id]), found[id]) != (type(label), label):
        raise AnswerError(f"{id!r} has two answers, {found[id]!r} and {label!r}; keep one")
    found[id] = label


def _queries(rows: Rows, answered: dict[str, Any]) -> set[int | None]:
    """The numbers in the column query of the answered rows; None stands for a row without one."""
    from ally.data.export.cells import read_text
    from ally.data.tables import Row

    if "query" not in rows.columns:
        return {None}
    found: set[int | None] = set()
    for row in rows.scan():
        if isinstance(row, Row):
            id = str(row.values.get("id"))
            if (read_text(id) if rows.written else id) in answered:
                found.add(_number(row.values.get("query")))
    return found


def _number(value: Any) -> int | None:
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return None


def _standard_input(read_file: ReadFile, written: Mapping[str, Any]) -> Answers:
    """CSV, or JSON lines if it begins with a brace."""
    if sys.stdin is None or sys.stdin.closed:
        raise AnswerError("standard input is closed; pipe answers into the command, or give a file")
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise AnswerError(
            "standard input is empty; pipe answers into the command: CSV with the columns id and label, or JSON lines"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (
            "answers.jsonl" if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "answers.csv"
        )
        path.write_bytes(content)
        try:
            return _file(path, read_file, written)
        except AllyError as error:
            error.args = (str(error).replace(str(path), "standard input"),)
            raise
