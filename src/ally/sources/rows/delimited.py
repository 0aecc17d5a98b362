"""CSV and TSV files, row by row, all values as they are written."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from ally.errors import DataError
from ally.sources.rows.base import BadRow, Row
from ally.sources.rows.lines import TOO_LONG, InLines, Line, Lines


class DelimitedRows(InLines):
    """A file with a header. A row with more or fewer fields than the header, or with broken quotes, is reported and
    left out."""

    written = True

    def __init__(self, path: Path, delimiter: str = ",", encoding: str = "utf-8") -> None:
        super().__init__(path, encoding)
        self._delimiter = delimiter
        with self._lines.open() as stream:
            found = next(self._parsed(stream), None)
        if found is None or found[1] is None:
            reason = "it is blank" if found is None else found[2]
            raise DataError(f"the header of {path} cannot be read ({reason}); name the columns in line 1")
        self._columns = tuple(name.strip() for name in found[1])
        for number, name in enumerate(self._columns, start=1):
            if not name:
                raise DataError(f"column {number} of {path} has no name; the first line must name every column")
            if name in self._columns[: number - 1]:
                raise DataError(f"{path} has the column {name!r} more than once; give every column its own name")

    def scan(self) -> Iterator[Row | BadRow]:
        with self._lines.open() as stream:
            rows = self._parsed(stream)
            next(rows)
            for first, fields, reason in rows:
                name = f"line {first.number}"
                if fields is None:
                    yield BadRow(name, reason)
                elif len(fields) != len(self._columns):
                    yield BadRow(name, self._ragged(fields))
                else:
                    yield Row(first.place, name, dict(zip(self._columns, fields, strict=True)))

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
                    found.append(dict(zip(self._columns, fields, strict=True)))
        return found

    def _ragged(self, fields: list[str]) -> str:
        return (
            f"the row has {len(fields)} fields and the header {len(self._columns)}; quote fields that hold a "
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
                reader = csv.reader(feed, delimiter=self._delimiter, strict=True)
                continue
            if fields:
                yield feed.row[0], fields, ""


class _Feed:
    """Lines for the csv module, remembering those of the current row."""

    def __init__(self, lines: Lines, stream: IO[bytes]) -> None:
        self._lines, self._stream = lines, stream
        self._source = lines.read(stream)
        self.row: list[Line] = []

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        line = next(self._source)
        self.row.append(line)
        if line.text is None:
            raise csv.Error(TOO_LONG)
        return line.text

    def back_to_second(self) -> None:
        """A quote that is never closed swallows what follows: the lines behind the first are read again as rows of
        their own."""
        if len(self.row) > 1:
            second = self.row[1]
            self._stream.seek(second.place)
            self._source = self._lines.read(self._stream, second.number)
