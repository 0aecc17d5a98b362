"""Tells what a process does beyond computing: connections, programs, and files outside the places it may use.

``sitecustomize.py`` installs it in every Python that a watched command starts; `watched` installs it in the command
itself. It cannot be taken away again: a hook of Python's audit stays.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

REPORT = "ALLY_WATCHED_REPORT"
"""The environment variable that names the file that acts are written to."""
PLACES = "ALLY_WATCHED_PLACES"
"""Folders that may be written to, separated as in PATH."""
SECRETS = "ALLY_WATCHED_SECRETS"
"""A folder that nobody may look into."""
NETWORK = ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname", "http.client.connect")
PROGRAMS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn", "webbrowser.open")
CHANGES = {
    "os.remove": 1,
    "os.rmdir": 1,
    "os.mkdir": 1,
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.chmod": 1,
    "os.chown": 1,
    "shutil.rmtree": 1,
    "shutil.move": 2,
    "shutil.copyfile": 2,
}
"""Events that change files, and how many of their first values are paths."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HARMLESS = ("/dev/null", "/dev/tty", "/dev/shm/", "/proc/self/")
COMPILED = (".nbi", ".nbc", "/__pycache__")
"""What Python and numba keep beside sources."""


class Reporter:
    """The audit hook. It must not fail, and must not open anything itself."""

    def __init__(self, report: str, places: str, secrets: str) -> None:
        self._file = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._places = tuple(os.path.realpath(place) + os.sep for place in places.split(os.pathsep))
        self._secrets = os.path.realpath(secrets) + os.sep
        self._busy = False

    def __call__(self, event: str, values: tuple[Any, ...]) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            act = self._find_act(event, values)
            if act is not None:
                os.write(self._file, (json.dumps(act) + "\n").encode())
        finally:
            self._busy = False

    def _find_act(self, event: str, values: tuple[Any, ...]) -> list[str] | None:
        if event in NETWORK:
            return [event, repr(values[1:])]
        if event == "socket.bind" and isinstance(values[1], tuple):
            return [event, repr(values[1])]
        if event in PROGRAMS:
            return [event, repr(values)[:300]]
        if event == "subprocess.Popen" and values[0] not in (sys.executable, None):
            return [event, repr(values[:2])[:300]]
        if event == "open":
            return self._find_open(*values)
        if event in CHANGES:
            outside = next((path for path in values[: CHANGES[event]] if not self._may_write(path)), None)
            return None if outside is None else [event, str(outside)]
        return None

    def _find_open(self, path: Any, mode: Any, flags: int) -> list[str] | None:
        if not isinstance(path, (str, bytes)):
            return None
        real = os.path.realpath(os.fsdecode(path)) + os.sep
        if real.startswith(self._secrets):
            return ["read", real]
        writes = bool(flags & WRITES) or (isinstance(mode, str) and any(letter in mode for letter in "wax+"))
        return ["write", real] if writes and not self._may_write(path) else None

    def _may_write(self, path: Any) -> bool:
        if not isinstance(path, (str, bytes)):
            return True  # a file that is open already
        real = os.path.realpath(os.fsdecode(path))
        return (real + os.sep).startswith((*self._places, *HARMLESS)) or any(mark in real for mark in COMPILED)


def report_acts() -> None:
    """From now on, where the environment asks for it."""
    if REPORT in os.environ:
        sys.addaudithook(Reporter(os.environ[REPORT], os.environ[PLACES], os.environ[SECRETS]))
