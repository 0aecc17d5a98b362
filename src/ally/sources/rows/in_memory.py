"""Tables that are held in memory: lists of dictionaries, sheets of .xlsx files, .json files with a list of objects."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from ally.errors import DataError, InputError, MissingPart
from ally.sources.paths import ensure_readable, file_stamp
from ally.sources.rows.base import BadRow, Row
from ally.sources.rows.headers import header_notes


class HeldRows:
    """Rows as dictionaries; `first` is the number of the first in messages, `path` the file they came from, `notes`
    what was decided about it."""

    written = False

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        place: str,
        *,
        path: Path | None = None,
        first: int = 1,
        notes: tuple[str, ...] = (),
    ) -> None:
        if not rows:
            raise DataError(f"{place} has no rows; give a table with samples")
        self._rows = [dict(row) for row in rows]
        self._columns = tuple(dict.fromkeys(str(name) for row in self._rows for name in row))
        self._place, self._path, self._first = place, path, first
        self.notes = notes

    @property
    def place(self) -> str:
        return self._place

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def stamp(self) -> tuple[int, ...]:
        return (len(self._rows),) if self._path is None else file_stamp(self._path)

    def scan(self) -> Iterator[Row | BadRow]:
        for number, values in enumerate(self._rows):
            yield Row(number, f"row {number + self._first}", values)

    def at(self, places: Sequence[int]) -> list[dict[str, Any] | str]:
        known = range(len(self._rows))
        return [self._rows[place] if place in known else "the file has become shorter" for place in places]


def rows_of_dictionaries(given: Sequence[Any]) -> HeldRows:
    odd = next((place for place, row in enumerate(given) if not isinstance(row, Mapping)), None)
    if odd is not None:
        raise InputError(
            f"entry {odd} of the list is a {type(given[odd]).__name__} and others are dictionaries; use one kind"
        )
    return HeldRows([{str(name): value for name, value in row.items()} for row in given], "the list of dictionaries")


def sheet_rows(path: Path, *, header: bool = True) -> HeldRows:
    """The first sheet of a workbook; formulas as the values they had when it was saved."""
    ensure_readable(path)
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise MissingPart("reading .xlsx needs openpyxl: pip install 'ally-learn[xlsx]'") from error
    try:
        book = load_workbook(path, read_only=True, data_only=True)
        lines = [list(line) for line in book.worksheets[0].iter_rows(values_only=True)] if book.worksheets else []
        book.close()
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read as a workbook ({error}); save it again as .xlsx") from error
    lines = [line for line in lines if any(value is not None for value in line)]
    if not lines:
        raise DataError(f"the first sheet of {path} is empty; put the table there")
    width = max(len(line) for line in lines)
    given = [("" if name is None else str(name).strip()) for name in lines[0]] if header else []
    names = [name or f"column {number}" for number, name in enumerate([*given, *[""] * (width - len(given))], start=1)]
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if repeated is not None:
        raise DataError(
            f"{path} has the column {repeated!r} more than once; give every column its own name, or say header=False "
            "(--no-header) if the first line holds data"
        )
    body = lines[1:] if header else lines
    rows = [{name: _plain(value) for name, value in zip(names, line, strict=False)} for line in body]
    notes = header_notes(names, rows, path) if header else ()
    return HeldRows(rows, str(path), path=path, first=2 if header else 1, notes=notes)


def _plain(value: Any) -> Any:
    """Dates as text, whole numbers as such: a sheet keeps 3 as 3.0."""
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def json_rows(path: Path, encoding: str) -> HeldRows:
    """A .json file that holds one list of objects."""
    ensure_readable(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig" if encoding == "utf-8" else encoding))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path} is not JSON ({error}); write a list of objects, or one object a line as .jsonl"
        ) from error
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise DataError(f"{path} holds no list of objects; write [{{...}}, {{...}}], or one object a line as .jsonl")
    return HeldRows(found, str(path), path=path)
