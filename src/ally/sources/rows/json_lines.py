"""JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ally.errors import DataError
from ally.sources.rows.base import BadRow, Row
from ally.sources.rows.lines import TOO_LONG, InLines, Line

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
        self._columns = tuple(columns)

    def scan(self) -> Iterator[Row | BadRow]:
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
                found.append("the file has become shorter" if line is None else _parsed(line))
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
