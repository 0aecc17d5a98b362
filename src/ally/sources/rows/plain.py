"""A plain text file: one text per line, in the column ``text``. Blank lines are no samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ally.sources.rows.base import BadRow, Row
from ally.sources.rows.lines import TOO_LONG, Lines


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
                found.append({"text": text} if text else "the file has become shorter")
        return found
