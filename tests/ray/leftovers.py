"""What processes leave behind: others that still run, and shared memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

MARK = "ALLY_TEST_SESSION"
SHARED = "/dev/shm/"


class Memory(NamedTuple):
    """A file of shared memory. It may have no name any more and still be held by a process."""

    device: str
    inode: int


class Process(NamedTuple):
    number: int
    title: str


class Session:
    """All processes that were started in a folder of their own, directly or by one another. (Their environment would
    tell as well, but a process that gives itself a title writes over it.)"""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._seen: set[Memory] = set()

    def start(self, *command: str, **more: Any) -> subprocess.Popen[str]:
        """The first of them, a Python program; no cluster is known to it. `more` is added to its environment."""
        others = {name: text for name, text in os.environ.items() if name != "RAY_ADDRESS"}
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=self._folder,
            env={**others, MARK: str(self._folder), **more},
            stdout=subprocess.PIPE,
            text=True,
        )

    def processes(self, title: str = "") -> list[Process]:
        """Those that run, and whose title contains this."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cwd").readlink() == self._folder and _runs(entry):
                    told = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                    found += [Process(int(entry.name), told)] if title in told else []
            except OSError:
                continue
        return found

    def look(self) -> int:
        """Notes the shared memory that they hold now; how many files have been seen so far."""
        for process in self.processes():
            self._seen |= _shared(process.number)
        return len(self._seen)

    def left(self, seconds: float = 60.0) -> tuple[list[Process], set[Memory]]:
        """Processes, and shared memory that was seen, that remain after at most so many seconds."""
        deadline = time.monotonic() + seconds
        while any(found := (self.processes(), self._held())) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _held(self) -> set[Memory]:
        named = {Memory(_device(one.stat().st_dev), one.stat().st_ino) for one in Path(SHARED).iterdir()}
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return self._seen & named.union(*map(_shared, numbers))


def _runs(entry: Path) -> bool:
    return (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def _shared(process: int) -> set[Memory]:
    try:
        lines = [line.split(maxsplit=5) for line in Path(f"/proc/{process}/maps").read_text().splitlines()]
    except OSError:
        return set()
    return {Memory(line[3], int(line[4])) for line in lines if len(line) > 5 and line[5].startswith(SHARED)}


def _device(number: int) -> str:
    return f"{os.major(number):02x}:{os.minor(number):02x}"
