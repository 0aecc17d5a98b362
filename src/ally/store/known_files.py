"""Which campaign files this user has had open: another one is looked through once, before it is used.

A mark in the state folder, by the campaign's id and the file's place on the disk, says how `ally` left the file. One
that was changed by other means, or copied over it, is another file: a colleague who sends the campaign back may have
changed anything in it. So a process that writes moves the mark on, but only from the state that the mark names.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ally.errors import StateUnavailable
from ally.state import open_state_folder

FOLDER = "known"
ID = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class FileMark:
    """Where nothing can be remembered, the file is looked through again next time."""

    path: Path
    file: Path

    def fits(self) -> bool:
        """Whether the file is as `ally` left it."""
        with suppress(OSError):
            return self.path.read_text() == self._describe()
        return False

    def write(self) -> None:
        """The file as it is now is one that `ally` left so, or has looked through."""
        with suppress(OSError):
            self.path.touch(mode=0o600)
            self.path.write_text(self._describe())

    def _describe(self) -> str:
        """Size and times of the file and its log. Nobody but the system sets the last of a file's times; that of a log
        changes whenever SQLite opens it."""
        found = self.file.stat()
        lines = [f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"]
        with suppress(FileNotFoundError):
            log = self.file.with_name(f"{self.file.name}-wal").stat()
            lines += [f"log {log.st_size} {log.st_mtime_ns}"] if log.st_size else []
        return "\n".join(lines)


def find_mark(campaign: str, file: Path) -> FileMark | None:
    """The mark of a file, which may not be there yet; None where nothing can be remembered."""
    with suppress(StateUnavailable, OSError):
        found = file.stat()
        return FileMark(open_state_folder(FOLDER) / f"{campaign}-{found.st_dev}-{found.st_ino}", file)
    return None
