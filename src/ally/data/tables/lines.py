"""Files that are made of lines, read in bounded memory whatever they hold: JSON lines and plain text."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from ally.data.paths import ensure_readable, file_stamp
from ally.data.size_limits import advise, find_limit, in_words
from ally.data.tables.base import GONE, BadRow, Row, Rows, check_columns, ensure_mostly_good
from ally.errors import DataError, InputError

LONGEST_LINE = 2**24
"""Bytes; a longer line is passed over and reported."""
TOO_LONG = f"the line is longer than {LONGEST_LINE} bytes and was skipped"
PACKED, PACKED_RATIO = 2**24, 50
"""Bytes that a .gz file may unpack to, whatever its size, and times its own size: rows of a few bytes take long."""
COUNTED = 2**28
"""Where that is less than this, the bytes are counted before any row is read: it takes a second."""
PIECE = 2**20
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
HEAD = 1000
"""The columns of JSON lines are those of the first objects; later ones may lack some, and what else they hold is shown
but not learned."""


class Line(NamedTuple):
    position: int
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
        self._packed = path.suffix.lower() == ".gz"
        size = path.stat().st_size
        if not size:
            raise DataError(f"{path} is empty; give a file with samples")
        self._longest = find_limit(max(PACKED, PACKED_RATIO * size)) if self._packed else sys.maxsize
        if self._longest <= COUNTED:
            self._count_unpacked()

    def open(self) -> IO[bytes]:
        try:
            return cast(IO[bytes], gzip.open(self.path)) if self._packed else self.path.open("rb")
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be opened ({error.strerror}); check that it exists and can be read"
            ) from error

    def read(self, stream: IO[bytes], number: int = 1) -> Iterator[Line]:
        """The lines from where the stream is; the first one is line `number`."""
        try:
            position = stream.tell()
            while data := stream.readline(LONGEST_LINE):
                size, text = len(data), None
                if size < LONGEST_LINE or data.endswith(b"\n"):
                    text = self._decode(data, position, number)
                while text is None and data and not data.endswith(b"\n"):
                    data = stream.readline(LONGEST_LINE)
                    size += len(data)
                    self._ensure_short(position + size)
                yield Line(position, number, text)
                number += 1
                position += size
                self._ensure_short(position)
        except DAMAGED as error:
            raise self._damage(error) from error

    def _count_unpacked(self) -> None:
        with self.open() as stream:
            try:
                while stream.read(PIECE):
                    self._ensure_short(stream.tell())
            except DAMAGED as error:
                raise self._damage(error) from error

    def _damage(self, error: Exception) -> DataError:
        return DataError(f"{self.path} is damaged ({error}); compress it again")

    def _ensure_short(self, position: int) -> None:
        if position > self._longest:
            raise DataError(f"{self.path} unpacks to more than {in_words(self._longest)}; {advise(self._longest)}")

    def _decode(self, data: bytes, position: int, number: int) -> str:
        if position == 0 and self.encoding == "utf-8":
            data = data.removeprefix(codecs.BOM_UTF8)
        try:
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise DataError(
                f"line {number} of {self.path} is not {self.encoding}: it holds the byte 0x{data[error.start]:02x} at "
                f"{error.start + 1}; {_advise_encoding(data, position)}"
            ) from error


def _advise_encoding(data: bytes, position: int) -> str:
    if position == 0 and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "it seems to be utf-16: convert it to UTF-8 first"
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "save it as UTF-8, or pass the encoding it was written in, such as latin-1"
    return "save it as UTF-8, or pass the encoding it was written in (encoding=, --encoding), such as cp1252"


class LineRows(Rows):
    """Rows that begin with a line, and are found again by its position."""

    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        self._lines = Lines(path, encoding)
        self.source = str(path)

    @abstractmethod
    def read_rows(self, stream: IO[bytes]) -> Iterator[tuple[Line, dict[str, Any] | str]]:
        """The first line of every row from where the stream is, and its values, or why it cannot be read."""

    def scan(self) -> Iterator[Row | BadRow]:
        return ensure_mostly_good(self._scan(), self.source)

    def _scan(self) -> Iterator[Row | BadRow]:
        with self._lines.open() as stream:
            for line, values in self.read_rows(stream):
                name = f"line {line.number}"
                yield BadRow(name, values) if isinstance(values, str) else Row(line.position, name, values)

    def at(self, positions: Sequence[int]) -> list[dict[str, Any] | str]:
        rows = []
        with self._lines.open() as stream:
            for position in positions:
                stream.seek(position)
                rows.append(next((values for _, values in self.read_rows(stream)), GONE))
        return rows

    def stamp(self) -> tuple[int, ...]:
        return file_stamp(self._lines.path)


class JsonRows(LineRows):
    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        super().__init__(path, encoding)
        columns: dict[str, None] = {}
        reason = "they are blank"
        for number, row in enumerate(self.scan()):
            if isinstance(row, Row):
                columns.update(dict.fromkeys(row.values))
            elif reason == "they are blank":
                reason = f"{row.name}: {row.reason}"
            if number >= HEAD:
                break
        if not columns:
            raise DataError(f"{path} holds no JSON object in its first lines ({reason}); write one object per line")
        self.columns = check_columns(columns, path)

    def read_rows(self, stream: IO[bytes]) -> Iterator[tuple[Line, dict[str, Any] | str]]:
        for line in self._lines.read(stream):
            if line.text is None or line.text.strip():
                yield line, _parse(line.text)


def _parse(text: str | None) -> dict[str, Any] | str:
    if text is None:
        return TOO_LONG
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"the line is not JSON ({error or type(error).__name__})"
    if isinstance(values, dict):
        return values
    return f"the line holds a {type(values).__name__}; an object {{...}} is needed"


class TextRows(LineRows):
    columns = ("text",)

    def read_rows(self, stream: IO[bytes]) -> Iterator[tuple[Line, dict[str, Any] | str]]:
        for line in self._lines.read(stream):
            if line.text is None:
                yield line, TOO_LONG
            elif text := line.text.strip():
                yield line, {"text": text}
