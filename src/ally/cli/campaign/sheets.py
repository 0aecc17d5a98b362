"""Tables to standard output or to files: CSV that is safe in spreadsheets, JSON lines, Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ally.cli.console import write_lines
from ally.errors import InputError, MissingPart

LABELS = frozenset({"label", "predicted"})
"""Columns in which a text that looks like a number is marked as a text."""


def check_out(out: Path | None, endings: Sequence[str]) -> None:
    """Checks the name of a file to write, before any work is done."""
    if out is None:
        return
    if out.suffix.lower() not in endings:
        raise InputError(f"{out} has the ending {out.suffix or '(none)'!r}; use one of {', '.join(endings)}")
    if not out.parent.is_dir():
        raise InputError(f"the folder {out.parent} of {out.name} does not exist; create it first")
    if out.is_dir():
        raise InputError(f"{out} is a folder; give the name of a file")


def write_rows(out: Path | None, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Writes a file by its ending, whole or not at all, or CSV to standard output. Returns the number of rows."""
    from ally.data.export.writing import whole_file

    counted = _Counted(rows)
    if out is None:
        write_lines(_csv_lines(columns, counted))
        return counted.n
    with whole_file(out) as partial:
        if out.suffix.lower() == ".parquet":
            _write_parquet(partial, columns, counted)
        else:
            write = _write_csv if out.suffix.lower() == ".csv" else _write_jsonl
            with partial.open("w", encoding="utf-8", newline="") as stream:
                write(stream, columns, counted)
    return counted.n


class _Counted:
    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.n = 0

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for row in self.rows:
            self.n += 1
            yield row


def _write_csv(stream: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    stream.writelines(f"{line}\n" for line in _csv_lines(columns, rows))


def _csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    from ally.data.export.cells import text_cell

    yield ",".join(_quoted(text_cell(name)) for name in columns)
    yield from (",".join(_quoted(_cell(name, row.get(name))) for name in columns) for row in rows)


def _cell(name: str, value: Any) -> str:
    from ally.data.export.cells import label_cell, text_cell

    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, (list, dict)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    if name in LABELS or isinstance(value, (bool, int, float)):
        return label_cell(value)
    return text_cell(str(value))


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\r\n') else cell


def _write_jsonl(stream: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        stream.write(json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False, default=str) + "\n")


def _write_parquet(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    import pandas as pd

    try:
        pd.DataFrame([dict(row) for row in rows], columns=list(columns)).to_parquet(path, index=False)
    except ImportError as error:
        raise MissingPart("writing .parquet needs pyarrow: pip install 'ally-learn[parquet]'") from error
