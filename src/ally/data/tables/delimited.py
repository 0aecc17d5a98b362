"""CSV and TSV files, row by row, all values as they are written, but for the comma of decimal numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ally.data.tables.base import BadRow, Row, ensure_mostly_good
from ally.data.tables.headers import BELOW_HEADER, ensure_few_columns, find_repeated, header_notes
from ally.data.tables.lines import LONGEST_LINE, TOO_LONG, InLines, Line, Lines
from ally.errors import DataError

SEPARATORS = (",", ";", "\t", "|")
WITH_COMMA = re.compile(r"\s*-?\d+,\d+\s*")
WITH_POINT = re.compile(r"\s*-?\d*\.\d+\s*")
THOUSANDS = re.compile(r"\s*-?\d{1,3}(\.\d{3})+,\d+\s*")
MOST_LINES = 2**16
"""Lines of one row, in quoted fields."""
READ_AGAIN = 2**22
LOOKED_AT = 1000
"""Rows that tell whether numbers are written with a comma."""


class DelimitedRows(InLines):
    """A file with a header, or without one: then columns are called ``column 1``, ``column 2`` … A row with more or
    fewer fields than the first, or with broken quotes, is reported and left out.

    The separator is that of `SEPARATORS` which the first line has most of. Where more numbers are written with a comma
    than with a point, as spreadsheets do in many countries, ``1,5`` is read as 1.5; `decimal` says so beforehand.
    """

    written = True

    def __init__(self, path: Path, encoding: str = "utf-8", *, header: bool = True, decimal: str | None = None) -> None:
        super().__init__(path, encoding)
        self._delimiter = _separator(self._lines)
        self._header = header
        self.decimal = "."
        self.notes: tuple[str, ...] = ()
        with self._lines.open() as stream:
            found = next(self._parsed(stream), None)
        if found is None or found[1] is None:
            reason = "it is blank" if found is None else found[2]
            raise DataError(f"the header of {path} cannot be read ({reason}); name the columns in line 1")
        names = [name.strip() for name in found[1]] if header else [""] * len(found[1])
        self._columns = tuple(name or f"column {number}" for number, name in enumerate(names, start=1))
        ensure_few_columns(self._columns, path)
        repeated = find_repeated(self._columns)
        if repeated is not None:
            raise DataError(
                f"{path} has the column {repeated!r} more than once; give every column its own name, or say "
                "header=False (--no-header) if the first line holds data"
            )
        self.decimal = decimal or _found_decimal(self._first(LOOKED_AT))
        self.notes = header_notes(self._columns, [*self._first(BELOW_HEADER)], path) if header else ()
        if self.decimal == ",":
            self.notes = (*self.notes, "numbers are written with a comma: 1,5 is read as 1.5")

    def _first(self, n: int) -> Iterator[dict[str, Any]]:
        """Those of the first n rows that can be read."""
        return (row.values for row in islice(self.scan(), n) if isinstance(row, Row))

    def _named(self, fields: list[str]) -> dict[str, Any]:
        return dict(zip(self._columns, map(self._cell, fields), strict=True))

    def _cell(self, cell: str) -> str:
        if self.decimal == "," and "," in cell and (WITH_COMMA.fullmatch(cell) or THOUSANDS.fullmatch(cell)):
            return cell.replace(".", "").replace(",", ".")
        return cell

    def scan(self) -> Iterator[Row | BadRow]:
        return ensure_mostly_good(self._scan(), self.place)

    def _scan(self) -> Iterator[Row | BadRow]:
        with self._lines.open() as stream:
            rows = self._parsed(stream)
            if self._header:
                next(rows)
            for first, fields, reason in rows:
                name = f"line {first.number}"
                if fields is None:
                    yield BadRow(name, reason)
                elif len(fields) != len(self._columns):
                    yield BadRow(name, self._ragged(fields))
                else:
                    yield Row(first.place, name, self._named(fields))

    def at(self, places: Sequence[int]) -> list[dict[str, Any] | str]:
        found: list[dict[str, Any] | str] = []
        with self._lines.open() as stream:
            for place in places:
                stream.seek(place)
                _, fields, reason = next(self._parsed(stream), (None, None, "the file is shorter than before"))
                if fields is None:
                    found.append(reason)
                elif len(fields) != len(self._columns):
                    found.append(self._ragged(fields))
                else:
                    found.append(self._named(fields))
        return found

    def _ragged(self, fields: list[str]) -> str:
        return (
            f"the row has {len(fields)} fields and the {'header' if self._header else 'first row'} "
            f"{len(self._columns)}; quote fields that hold a "
            f"{self._delimiter!r}"
        )

    def _parsed(self, stream: IO[bytes]) -> Iterator[tuple[Line, list[str] | None, str]]:
        """First line, fields (None: unreadable) and the reason of every row. Behind a broken row it goes on with the
        next line."""
        feed = _Feed(self._lines, stream)
        reader = csv.reader(feed, delimiter=self._delimiter, strict=True)
        while True:
            feed.row = []
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if not feed.row:
                    return
                first = feed.row[0]
                yield first, None, TOO_LONG if first.text is None else f"the row cannot be split into fields ({error})"
                feed.back_to_second()
                if feed.read_again > READ_AGAIN:
                    raise DataError(
                        f"{self.place} has rows whose quotes are never closed, such as that of line {first.number}; "
                        "correct its quotes"
                    ) from error
                reader = csv.reader(feed, delimiter=self._delimiter, strict=True)
                continue
            if fields:
                yield feed.row[0], fields, ""


def _found_decimal(rows: Iterable[Mapping[str, str]]) -> str:
    """A comma, if more cells of the rows are such numbers."""
    commas = points = 0
    for row in rows:
        for cell in row.values():
            commas += WITH_COMMA.fullmatch(cell) is not None
            points += WITH_POINT.fullmatch(cell) is not None
    return "," if commas > points else "."


def _separator(lines: Lines) -> str:
    """The mark that the first line has most of outside quotes; of equals the first."""
    with lines.open() as stream:
        first = next(lines.read(stream), None)
    text = "" if first is None or first.text is None else re.sub(r'"[^"]*"', "", first.text)
    return max(SEPARATORS, key=text.count)


class _Feed:
    """Lines for the csv module, remembering those of the current row."""

    def __init__(self, lines: Lines, stream: IO[bytes]) -> None:
        self._lines, self._stream = lines, stream
        self._source = lines.read(stream)
        self.row: list[Line] = []
        self.read_again = 0
        """Characters that were read once more, behind rows that could not be split."""

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        line = next(self._source)
        self.row.append(line)
        if line.text is None:
            raise csv.Error(TOO_LONG)
        if len(self.row) > 1 and (
            len(self.row) > MOST_LINES or self._stream.tell() - self.row[0].place > 2 * LONGEST_LINE
        ):
            raise csv.Error(f"it goes on for {len(self.row)} lines")
        return line.text

    def back_to_second(self) -> None:
        """A quote that is never closed swallows what follows: the lines behind the first are read again as rows of
        their own."""
        if len(self.row) > 1:
            second = self.row[1]
            self.read_again += self._stream.tell() - second.place
            self._stream.seek(second.place)
            self._source = self._lines.read(self._stream, second.number)
