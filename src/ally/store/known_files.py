"""Which campaign files this user has had open: another one is looked through once, before it is used.

A mark is an empty file in the state folder, by the campaign's id and the file's place on the disk: a file that took the
place of a known one is another file.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from ally.errors import StateUnavailable
from ally.state import open_state_folder

FOLDER = "known"
ID = re.compile("[0-9a-f]{32}")


def is_known(campaign: str, file: Path) -> bool:
    with suppress(StateUnavailable, OSError):
        return _mark(campaign, file).exists()
    return False


def remember_file(campaign: str, file: Path) -> None:
    """Where nothing can be remembered, the file is looked through again next time."""
    with suppress(StateUnavailable, OSError):
        _mark(campaign, file).touch(mode=0o600)


def _mark(campaign: str, file: Path) -> Path:
    found = file.stat()
    return open_state_folder(FOLDER) / f"{campaign}-{found.st_dev}-{found.st_ino}"
