"""Tables that are held in memory: lists of dictionaries, sheets of .xlsx files, .json files with a list of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from ally.data.json_files import read_json
from ally.data.paths import file_stamp
from ally.data.size_limits import ensure_unpacked_fits
from ally.data.tables.base import GONE, BadRow, Row, Rows, check_columns
from ally.data.tables.headers import header_notes
from ally.data.tables.workbook import read_first_sheet
from ally.errors import DataError, InputError

CELL, CELLS, CELL_RATIO = 16, 2**25, 100
"""Bytes for each cell of a table, filled or not, and how many there may be at least, and times the file's size."""


class HeldRows(Rows):
    """Rows as dictionaries; `first` is the number of the first in messages, `path` the file they came from."""

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        source: str,
        *,
        path: Path | None = None,
        first: int = 1,
        notes: tuple[str, ...] = (),
    ) -> None:
        if not rows:
            raise DataError(f"{source} has no rows; give a table with samples")
        self._rows = [dict(row) for row in rows]
        self.columns = check_columns(dict.fromkeys(str(name) for row in self._rows for name in row), source)
        if path is not None:
            cells = len(self._rows) * len(self.columns)
            ensure_unpacked_fits(path, CELL * cells, path.stat().st_size, CELLS, CELL_RATIO)
        self.source, self.notes = source, notes
        self._path, self._first = path, first

    def stamp(self) -> tuple[int, ...]:
        return (len(self._rows),) if self._path is None else file_stamp(self._path)

    def scan(self) -> Iterator[Row | BadRow]:
        for number, values in enumerate(self._rows):
            yield Row(number, f"row {number + self._first}", values)

    def at(self, positions: Sequence[int]) -> list[dict[str, Any] | str]:
        known = range(len(self._rows))
        return [self._rows[position] if position in known else GONE for position in positions]


def rows_of_dictionaries(given: Sequence[Any]) -> HeldRows:
    for number, row in enumerate(given):
        if not isinstance(row, Mapping):
            raise InputError(
                f"entry {number} of the list is a {type(row).__name__} and others are dictionaries; use one kind"
            )
    return HeldRows([{str(name): value for name, value in row.items()} for row in given], "the list of dictionaries")


def sheet_rows(path: Path, *, header: bool = True) -> HeldRows:
    """The first sheet of a workbook; formulas as the values they had when it was saved."""
    lines = read_first_sheet(path)
    if not lines:
        raise DataError(f"the first sheet of {path} is empty; put the table there")
    width = max(max(line) for line in lines) + 1
    written = {column: str(name).strip() for column, name in lines[0].items()} if header else {}
    names = check_columns([written.get(n) or f"column {n + 1}" for n in range(width)], path, header=True)
    rows: list[dict[str, Any]] = [
        {names[column]: _plain(value) for column, value in line.items()} for line in lines[header:]
    ]
    # The first names all columns, in the order of the sheet.
    rows[:1] = [{name: row.get(name) for name in names} for row in rows[:1]]
    notes = header_notes(names, rows, path) if header else ()
    return HeldRows(rows, str(path), path=path, first=1 + header, notes=notes)


def _plain(value: Any) -> Any:
    """Dates as text, whole numbers as such: a sheet keeps 3 as 3.0."""
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def json_rows(path: Path, encoding: str) -> HeldRows:
    """A .json file that holds one list of objects."""
    rows = read_json(path, encoding, "write a list of objects, or one object a line as .jsonl")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path} holds no list of objects; write [{{...}}, {{...}}], or one object a line as .jsonl")
    return HeldRows(rows, str(path), path=path)
