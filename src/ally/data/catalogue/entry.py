"""An entry of the catalogue: facts about a data set, its files, and the function that reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ally.data.catalogue.dataset import Kind, Parts
from ally.errors import InputError
from ally.types import Task


@dataclass(frozen=True)
class File:
    """A file that the reader needs, by its path below the data folder."""

    path: str
    checksum: str | None = None
    """``md5:…`` or ``sha256:…`` of the official file; None if unknown."""
    urls: tuple[str, ...] = ()
    """Addresses to fetch it from, tried in turn."""
    instead: tuple[File, ...] = ()
    """Other forms of the same content that can be used instead."""
    needed: bool = True
    """Whether the data set cannot be read without it."""
    size: int | None = None
    """Size of the official file in bytes, if that is known and its checksum is not."""

    def __post_init__(self) -> None:
        if self.urls and self.checksum is None:
            raise InputError(
                f"{self.path} has an address and no checksum; what is fetched must be verified: give its checksum"
            )


@dataclass(frozen=True)
class Archive:
    """An archive of files that cannot be fetched one by one; only `holds` is unpacked."""

    path: str
    checksum: str
    urls: tuple[str, ...]
    holds: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue."""

    task: Task
    kind: Kind
    describe: str
    size: str
    """Samples in pool + test, and their shape."""
    citation: str
    terms: str
    read: Callable[[Path], Parts] = field(repr=False)
    files: tuple[File, ...] = ()
    """Empty for data that ships with scikit-learn."""
    archives: tuple[Archive, ...] = ()
    by_hand: str = ""
    """How to get the files that cannot be fetched."""

    @property
    def fetchable(self) -> bool:
        """Whether every file can be fetched."""
        held = {path for archive in self.archives for path in archive.holds}
        return all(file.urls or file.path in held for file in self.files)
