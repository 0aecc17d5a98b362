"""The rounds of one cell in one file: one line each, written completely or not at all.

The first line holds the settings. A line counts once its newline is on disk; anything a crash left after the last
newline is cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NotRequired, get_type_hints

from ally.errors import InputError
from ally.experiment.cell import Record, Round
from ally.files import open_in_place
from ally.json_form import find_misfit

FORM = {
    name: NotRequired[kind] if name in {"protocol", "positive_duals", "rank_quality", "learner"} else kind
    for name, kind in get_type_hints(Record).items()
}
"""What a record holds; older ones lack some."""


@dataclass(frozen=True)
class Journal:
    path: Path

    def rounds(self) -> list[Round]:
        """What is on disk, in order; a round that was run again counts once."""
        found: dict[int, Round] = {}
        for number, line in enumerate(self._lines()[1:], start=2):
            misfit = find_misfit(line, {"record": FORM, "asked": list[int]})
            if misfit is not None:
                raise InputError(f"{self.path} is damaged (line {number}: {misfit}); delete it to run its cell again")
            done = Round(Record(**line["record"]), tuple(line["asked"]))
            found[done.record.round] = done
        return [found[number] for number in sorted(found)]

    @property
    def settings(self) -> dict[str, Any]:
        lines = self._lines()
        misfit = find_misfit(lines[0], {"settings": dict[str, Any]}) if lines else None
        if misfit is not None:
            raise InputError(f"{self.path} is damaged (line 1: {misfit}); delete it to run its cell again")
        return lines[0]["settings"] if lines else {}

    @contextmanager
    def writing(self, settings: dict[str, Any]) -> Iterator[Journal]:
        """Lock the file against other processes, waiting for one that is about to end, and cut off an unfinished
        line."""
        with self._open_to_append() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.truncate(file.fileno(), self._whole())
            if not self._whole():
                self._append({"settings": settings})
            yield self

    def add(self, done: Round) -> None:
        """On disk when this returns."""
        self._append({"record": asdict(done.record), "asked": done.asked})

    def _append(self, line: dict[str, Any]) -> None:
        with self._open_to_append() as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        content = self._read()
        lines = content[: content.rfind(b"\n") + 1].splitlines()
        try:
            return [json.loads(line) for line in lines]
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path} is damaged ({error}); delete it to run its cell again") from error

    def _whole(self) -> int:
        """Bytes up to the last newline."""
        return self._read().rfind(b"\n") + 1

    def _read(self) -> bytes:
        with os.fdopen(open_in_place(self.path, os.O_RDONLY), "rb") as file:
            return file.read()

    def _open_to_append(self) -> IO[bytes]:
        return os.fdopen(open_in_place(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")
