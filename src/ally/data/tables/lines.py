"""Files that are made of lines, read in bounded memory whatever they hold: JSON lines and plain text."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from ally.data.paths import ensure_readable, file_stamp
from ally.data.size_limits import advise, find_limit, in_words
from ally.data.tables.base import BadRow, Row, ensure_mostly_good
from ally.data.tables.headers import ensure_few_columns
from ally.errors import DataError, InputError

LONGEST_LINE = 2**24
"""Bytes; a longer line is passed over and reported."""
BOMS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


PACKED, PACKED_RATIO = 2**24, 50
"""Bytes that a .gz file may unpack to, whatever its size, and times its own size: rows of a few bytes take long."""
COUNTED = 2**28
"""Where that is less than this, the bytes are counted before any row is read: it takes a second."""


PIECE = 2**20
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)


class Line(NamedTuple):
    place: int
    number: int
    text: str | None
    """With its end; None if it is too long."""


class Lines:
    """A text file, read as UTF-8 unless another encoding is given. A line ends with LF (or CR LF)."""

    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        ensure_readable(path)
        try:
            plain = "a,\n".encode(codecs.lookup(encoding).name if encoding != "utf-8-sig" else "utf-8") == b"a,\n"
        except (LookupError, UnicodeError) as error:
            raise InputError.about(
                "encoding", encoding, "is unknown to Python; use for instance 'utf-8', 'cp1252' or 'latin-1'"
            ) from error
        if not plain:
            raise InputError.about("encoding", encoding, f"does not extend ASCII; convert {path} to UTF-8 first")
        self.path = path
        self.encoding = "utf-8" if encoding.lower().replace("_", "-") in ("utf8", "utf-8-sig") else encoding
        packed = path.suffix.lower() == ".gz"
        size = path.stat().st_size
        if not size:
            raise DataError(f"{path} is empty; give a file with samples")
        self._longest = find_limit(max(PACKED, PACKED_RATIO * size)) if packed else sys.maxsize
        if packed and self._longest <= COUNTED:
            self._count_unpacked()

    def stamp(self) -> tuple[int, ...]:
        return file_stamp(self.path)

    def open(self) -> IO[bytes]:
        try:
            if self.path.suffix.lower() == ".gz":
                return cast(IO[bytes], gzip.open(self.path))
            return self.path.open("rb")
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be opened ({error.strerror}); check that it exists and can be read"
            ) from error

    def read(self, stream: IO[bytes], number: int = 1) -> Iterator[Line]:
        """The lines from where the stream is; the first one is line `number`."""
        while True:
            try:
                place = stream.tell()
                self._ensure_short(place)
                data = stream.readline(LONGEST_LINE)
            except DAMAGED as error:
                raise self._damage(error) from error
            if not data:
                return
            if len(data) >= LONGEST_LINE and not data.endswith(b"\n"):
                while data and not data.endswith(b"\n"):
                    data = stream.readline(LONGEST_LINE)
                    self._ensure_short(stream.tell())
                yield Line(place, number, None)
            else:
                yield Line(place, number, self._decoded(data, place, number))
            number += 1

    def _count_unpacked(self) -> None:
        with self.open() as stream:
            try:
                while stream.read(PIECE):
                    self._ensure_short(stream.tell())
            except DAMAGED as error:
                raise self._damage(error) from error

    def _damage(self, error: Exception) -> DataError:
        return DataError(f"{self.path} is damaged ({error}); compress it again")

    def _ensure_short(self, place: int) -> None:
        if place > self._longest:
            raise DataError(f"{self.path} unpacks to more than {in_words(self._longest)}; {advise(self._longest)}")

    def _decoded(self, data: bytes, place: int, number: int) -> str:
        if place == 0 and data.startswith(codecs.BOM_UTF8) and self.encoding == "utf-8":
            data = data[len(codecs.BOM_UTF8) :]
        try:
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise DataError(f"{self._met(data, error, number)}; {_advice(data, place)}") from error

    def _met(self, data: bytes, error: UnicodeDecodeError, number: int) -> str:
        return (
            f"line {number} of {self.path} is not {self.encoding}: it holds the byte "
            f"0x{data[error.start]:02x} at {error.start + 1}"
        )


class InLines:
    """What readers of files that are made of lines have in common. `_columns` is set when the file is opened."""

    written: bool
    _columns: tuple[str, ...]

    def __init__(self, path: Path, encoding: str) -> None:
        self._lines = Lines(path, encoding)

    @property
    def place(self) -> str:
        return str(self._lines.path)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def stamp(self) -> tuple[int, ...]:
        return self._lines.stamp()


def _advice(data: bytes, place: int) -> str:
    if place == 0 and any(data.startswith(mark) for mark in BOMS):
        return "it seems to be utf-16: convert it to UTF-8 first"
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "save it as UTF-8, or pass the encoding it was written in, such as latin-1"
    return "save it as UTF-8, or pass the encoding it was written in (encoding=, --encoding), such as cp1252"


TOO_LONG = f"the line is longer than {LONGEST_LINE} bytes and was skipped"


HEAD = 1000
"""The columns are those of the first objects; later objects may lack some, and what else they hold is shown but not
learned."""


class JsonRows(InLines):
    written = False

    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        super().__init__(path, encoding)
        columns: dict[str, None] = {}
        first_bad = ""
        for number, row in enumerate(self.scan()):
            if isinstance(row, Row):
                columns.update(dict.fromkeys(row.values))
            elif not first_bad:
                first_bad = f"{row.name}: {row.reason}"
            if number >= HEAD:
                break
        if not columns:
            raise DataError(
                f"{path} holds no JSON object in its first lines ({first_bad or 'they are blank'}); write one object "
                "per line"
            )
        ensure_few_columns(columns, path)
        self._columns = tuple(columns)

    def scan(self) -> Iterator[Row | BadRow]:
        return ensure_mostly_good(self._scan(), self.place)

    def _scan(self) -> Iterator[Row | BadRow]:
        with self._lines.open() as stream:
            for line in self._lines.read(stream):
                if line.text is None or line.text.strip():
                    values = _parsed(line)
                    name = f"line {line.number}"
                    yield BadRow(name, values) if isinstance(values, str) else Row(line.place, name, values)

    def at(self, places: Sequence[int]) -> list[dict[str, Any] | str]:
        found = []
        with self._lines.open() as stream:
            for place in places:
                stream.seek(place)
                line = next(self._lines.read(stream), None)
                found.append("the file is shorter than before" if line is None else _parsed(line))
        return found


def _parsed(line: Line) -> dict[str, Any] | str:
    if line.text is None:
        return TOO_LONG
    try:
        values = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        return f"the line is not JSON ({error or type(error).__name__})"
    return (
        values if isinstance(values, dict) else f"the line holds a {type(values).__name__}; an object {{...}} is needed"
    )


class TextRows:
    columns = ("text",)
    written = False

    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        self._lines = Lines(path, encoding)

    @property
    def place(self) -> str:
        return str(self._lines.path)

    def stamp(self) -> tuple[int, ...]:
        return self._lines.stamp()

    def scan(self) -> Iterator[Row | BadRow]:
        with self._lines.open() as stream:
            for line in self._lines.read(stream):
                name = f"line {line.number}"
                if line.text is None:
                    yield BadRow(name, TOO_LONG)
                elif text := line.text.strip():
                    yield Row(line.place, name, {"text": text})

    def at(self, places: Sequence[int]) -> list[dict[str, Any] | str]:
        found: list[dict[str, Any] | str] = []
        with self._lines.open() as stream:
            for place in places:
                stream.seek(place)
                line = next(self._lines.read(stream), None)
                text = "" if line is None or line.text is None else line.text.strip()
                found.append({"text": text} if text else "the file is shorter than before")
        return found
