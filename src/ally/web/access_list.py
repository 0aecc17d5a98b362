"""Who may come in, as one ordered list: a link was made, a link was used for a session, someone's access ended.

The list is never in a campaign's file, which may come from somebody else. It is asked at each request, so that several
servers of one campaign agree.
"""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from ally.errors import StateUnavailable
from ally.state import lock_state, open_state_folder, write_private

Role: TypeAlias = Literal["annotator", "owner"]


@dataclass(frozen=True)
class AccessEntry:
    """Of links and sessions only the digest of their secret is kept, and until when it holds; a session says of which
    link it came. An end has neither."""

    kind: Literal["link", "session", "end"]
    annotator: str
    role: Role = "annotator"
    digest: str = ""
    until: float = 0.0
    link: str = ""


@dataclass
class Admitted:
    """The links and sessions that hold after some entries, by digest."""

    links: dict[str, AccessEntry] = field(default_factory=dict)
    sessions: dict[str, AccessEntry] = field(default_factory=dict)

    def add(self, entry: AccessEntry) -> None:
        if entry.kind == "link":
            self.links[entry.digest] = entry
        elif entry.kind == "session":
            self.links.pop(entry.link, None)
            self.sessions[entry.digest] = entry
        else:
            for kept in (self.links, self.sessions):
                for digest in [digest for digest, one in kept.items() if one.annotator == entry.annotator]:
                    del kept[digest]

    def with_entries(self, entries: Iterable[AccessEntry]) -> Admitted:
        """Another, with these entries after its own."""
        made = Admitted(dict(self.links), dict(self.sessions))
        for entry in entries:
            made.add(entry)
        return made

    def list_valid(self, now: float) -> list[AccessEntry]:
        """Entries that make the same again; what has expired is left out."""
        return [entry for kept in (self.links, self.sessions) for entry in kept.values() if entry.until > now]


Decide: TypeAlias = Callable[[Admitted], Sequence[AccessEntry]]


class AccessList(ABC):
    """One ordered list of entries, shared by all servers of a campaign that can reach it."""

    waits: bool = False
    """Whether a look at it waits for another machine."""

    @abstractmethod
    def read(self) -> Admitted:
        """Who is admitted now."""

    @abstractmethod
    def change(self, decide: Decide, now: float) -> Sequence[AccessEntry]:
        """Adds the entries that `decide` finds for those admitted; nobody else changes the list meanwhile."""

    def close(self) -> None:
        """Nothing is read any more."""


class MemoryList(AccessList):
    """For one server, while it runs."""

    def __init__(self) -> None:
        self._admitted = Admitted()
        self._changing = threading.Lock()

    def read(self) -> Admitted:
        return self._admitted

    def change(self, decide: Decide, now: float) -> Sequence[AccessEntry]:
        with self._changing:
            new = decide(self._admitted)
            self._admitted = self._admitted.with_entries(new)
        return new


class FileList(AccessList):
    """In this user's state folder, a file for each campaign; whoever changes it replaces the file."""

    def __init__(self, campaign: str) -> None:
        folder = open_state_folder("access")
        self._path, self._lock = folder / f"{campaign}.json", folder / f"{campaign}.lock"
        self._looking = threading.Lock()
        self._stamp: tuple[int, ...] = ()
        self._admitted = Admitted()
        self._opened: BinaryIO | None = None
        with lock_state(self._lock):
            self.read()

    def read(self) -> Admitted:
        try:
            stamp = _stamp(os.stat(self._path))
        except FileNotFoundError:
            return Admitted()
        except OSError as error:
            raise _unreadable(self._path, error.strerror) from error
        with self._looking:
            if stamp != self._stamp:
                # Held open until the next one is read: no other file gets its number meanwhile, so that stamps differ.
                opened = _open(self._path)
                self._admitted, self._stamp = _read_entries(self._path, opened), _stamp(os.fstat(opened.fileno()))
                self.close()
                self._opened = opened
            return self._admitted

    def change(self, decide: Decide, now: float) -> Sequence[AccessEntry]:
        with lock_state(self._lock):
            admitted = self.read()
            new = decide(admitted)
            if new:
                kept = admitted.with_entries(new).list_valid(now)
                write_private(self._path, json.dumps({"entries": [asdict(entry) for entry in kept]}).encode())
        return new

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _open(path: Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise _unreadable(path, error.strerror) from error


def _read_entries(path: Path, opened: BinaryIO) -> Admitted:
    try:
        return Admitted().with_entries(AccessEntry(**entry) for entry in json.loads(opened.read())["entries"])
    except (ValueError, TypeError, KeyError, OSError) as error:
        opened.close()
        raise _unreadable(path, "it is damaged") from error


def _unreadable(path: Path, reason: str | None) -> StateUnavailable:
    return StateUnavailable(
        f"the list of who may come in, {path}, cannot be read ({reason}); remove it and invite everybody anew"
    )
