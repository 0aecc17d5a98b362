"""What processes leave behind: others that still run, and shared memory."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

MARK = "ALLY_TEST_SESSION"
SHARED = "/dev/shm/"


class Memory(NamedTuple):
    """A file of shared memory. It may have no name any more and still be held by a process."""

    device: str
    inode: int


class Session:
    """All processes that were started with an environment, directly or by one another."""

    def __init__(self, name: str) -> None:
        self._mark = f"{MARK}={name}"
        self._seen: set[Memory] = set()

    @property
    def environment(self) -> dict[str, str]:
        """For the first of them; no cluster is known to it."""
        name, value = self._mark.split("=", 1)
        return {**{key: text for key, text in os.environ.items() if key != "RAY_ADDRESS"}, name: value}

    def processes(self, title: str = "") -> list[int]:
        """Those that run, and whose command contains this."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                ours = entry.name.isdigit() and self._mark.encode() in (entry / "environ").read_bytes().split(b"\0")
                if ours and title.encode() in (entry / "cmdline").read_bytes() and _runs(int(entry.name)):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def look(self) -> int:
        """Notes the shared memory that they hold now; how many files have been seen so far."""
        for process in self.processes():
            self._seen |= _shared(process)
        return len(self._seen)

    def left(self, seconds: float = 60.0) -> tuple[list[int], set[Memory]]:
        """Processes, and shared memory that was seen, that remain after at most so many seconds."""
        deadline = time.monotonic() + seconds
        while any(found := (self.processes(), self._held())) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _held(self) -> set[Memory]:
        named = {Memory(_device(one.stat().st_dev), one.stat().st_ino) for one in Path(SHARED).iterdir()}
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return self._seen & named.union(*map(_shared, numbers))


def _runs(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def _shared(process: int) -> set[Memory]:
    try:
        lines = [line.split(maxsplit=5) for line in Path(f"/proc/{process}/maps").read_text().splitlines()]
    except OSError:
        return set()
    return {Memory(line[3], int(line[4])) for line in lines if len(line) > 5 and line[5].startswith(SHARED)}


def _device(number: int) -> str:
    return f"{os.major(number):02x}:{os.minor(number):02x}"
