"""CSV and TSV files, row by row, all values as they are written, but for the comma of decimal numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ally.data.tables.base import Row, check_columns
from ally.data.tables.headers import BELOW_HEADER, header_notes
from ally.data.tables.lines import LONGEST_LINE, TOO_LONG, Line, LineRows, Lines
from ally.errors import DataError

SEPARATORS = (",", ";", "\t", "|")
WITH_COMMA = re.compile(r"\s*-?\d+,\d+\s*")
WITH_POINT = re.compile(r"\s*-?\d*\.\d+\s*")
THOUSANDS = re.compile(r"\s*-?\d{1,3}(\.\d{3})+,\d+\s*")
MOST_LINES = 2**16
"""Lines of one row, in quoted fields."""
READ_AGAIN = 2**22
HEAD = 1000
"""Rows that tell whether numbers are written with a comma."""


class DelimitedRows(LineRows):
    """A file with a header, or without one: then columns are called ``column 1``, ``column 2`` … A row with more or
    fewer fields than the first, or with broken quotes, is reported and left out.

    The separator is that of `SEPARATORS` which the first line has most of. Where more numbers are written with a comma
    than with a point, as spreadsheets do in many countries, ``1,5`` is read as 1.5; `decimal` says so beforehand.
    """

    written = True

    def __init__(self, path: Path, encoding: str = "utf-8", *, header: bool = True, decimal: str | None = None) -> None:
        super().__init__(path, encoding)
        self._header = header
        with self._lines.open() as stream:
            line = next(self._lines.read(stream), None)
            self._delimiter = _find_separator("" if line is None else line.text or "")
            stream.seek(0)
            _, fields = next(self._split(stream), (None, "it is blank"))
        if isinstance(fields, str):
            raise DataError(f"the header of {path} cannot be read ({fields}); name the columns in line 1")
        names = [name.strip() if header else "" for name in fields]
        names = [name or f"column {number}" for number, name in enumerate(names, start=1)]
        self.columns = check_columns(names, path, header=True)
        self.decimal = decimal or _find_decimal(self._head(HEAD))
        self.notes = header_notes(self.columns, [*self._head(BELOW_HEADER)], path) if header else ()
        if self.decimal == ",":
            self.notes = (*self.notes, "numbers are written with a comma: 1,5 is read as 1.5")

    def _head(self, n: int) -> Iterator[dict[str, Any]]:
        """Those of the first n rows that can be read."""
        return (row.values for row in islice(self.scan(), n) if isinstance(row, Row))

    def read_rows(self, stream: IO[bytes]) -> Iterator[tuple[Line, dict[str, Any] | str]]:
        begin = stream.tell()
        rows = self._split(stream)
        if self._header and begin == 0:
            next(rows)
        width = len(self.columns)
        for line, fields in rows:
            if not isinstance(fields, str) and len(fields) != width:
                what = "header" if self._header else "first row"
                fields = (
                    f"the row has {len(fields)} fields and the {what} {width}; quote fields that hold a "
                    f"{self._delimiter!r}"
                )
            yield line, fields if isinstance(fields, str) else self._name_cells(fields)

    def _name_cells(self, cells: list[str]) -> dict[str, Any]:
        return dict(zip(self.columns, map(_with_point, cells) if self.decimal == "," else cells, strict=True))

    def _split(self, stream: IO[bytes]) -> Iterator[tuple[Line, list[str] | str]]:
        """The first line of every row and its fields, or why it has none. Behind a broken row it goes on with the next
        line: a quote that is never closed swallows what follows."""
        lines = _LinesOfRow(self._lines, stream)
        again = 0
        while True:
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
            try:
                for fields in reader:
                    if fields:
                        yield lines.row[0], fields
                    lines.row.clear()
                return
            except csv.Error as error:
                if not lines.row:
                    return
                first = lines.row[0]
                yield first, TOO_LONG if first.text is None else f"the row cannot be split into fields ({error})"
                again += lines.go_back()
                if again > READ_AGAIN:
                    raise DataError(
                        f"{self.source} has rows whose quotes are never closed, such as that of line {first.number}; "
                        "correct its quotes"
                    ) from error


class _LinesOfRow:
    """Lines for the csv module, and in `row` those of the current row."""

    def __init__(self, lines: Lines, stream: IO[bytes]) -> None:
        self._lines, self._stream = lines, stream
        self._rest = lines.read(stream)
        self.row: list[Line] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._rest)
        self.row.append(line)
        if line.text is None:
            raise csv.Error(TOO_LONG)
        lines = len(self.row)
        if lines > 1 and (lines > MOST_LINES or line.position - self.row[0].position > LONGEST_LINE):
            raise csv.Error(f"it goes on for {lines} lines")
        return line.text

    def go_back(self) -> int:
        """To the second line of the row; how many bytes are read once more."""
        again = 0
        if len(self.row) > 1:
            second = self.row[1]
            again = self._stream.tell() - second.position
            self._stream.seek(second.position)
            self._rest = self._lines.read(self._stream, second.number)
        self.row.clear()
        return again


def _find_separator(line: str) -> str:
    """The mark that a line has most of outside quotes; of equals the first."""
    return max(SEPARATORS, key=re.sub(r'"[^"]*"', "", line).count)


def _find_decimal(rows: Iterable[Mapping[str, str]]) -> str:
    """A comma, if more cells of the rows are such numbers."""
    commas = points = 0
    for row in rows:
        for cell in row.values():
            commas += WITH_COMMA.fullmatch(cell) is not None
            points += WITH_POINT.fullmatch(cell) is not None
    return "," if commas > points else "."


def _with_point(cell: str) -> str:
    if "," in cell and (WITH_COMMA.fullmatch(cell) or THOUSANDS.fullmatch(cell)):
        return cell.replace(".", "").replace(",", ".")
    return cell
