"""Where the rows of a large file are, kept on disk: a program that opens the file again need not walk through it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ally.files import replacing
from ally.sources.identity import Index, content_hash

WORTH = 50_000
"""Rows of a file; a shorter one is walked through in less than a second."""


@dataclass(frozen=True)
class KeptIndex:
    """One file in `folder` for the source at `place`, good for as long as the source's stamp and `reading` (how ids are
    read) stay.

    What cannot be read or written is passed over: the source can always be walked through instead.
    """

    folder: Path
    place: str
    reading: str

    def read(self, stamp: tuple[int, ...]) -> Index | None:
        try:
            return Index.of(np.load(self._path(stamp), allow_pickle=False))
        except (OSError, ValueError, EOFError, AttributeError, MemoryError):
            return None

    def write(self, stamp: tuple[int, ...], index: Index) -> None:
        if len(index) < WORTH:
            return
        path = self._path(stamp)
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as aside, aside.open("wb") as out:
                np.save(out, index.arrays)
            for earlier in self.folder.glob(f"{self._name}-*"):
                if earlier != path:
                    earlier.unlink(missing_ok=True)

    @property
    def _name(self) -> str:
        return f"rows-{content_hash(self.place.encode('utf-8', 'surrogateescape'))}"

    def _path(self, stamp: tuple[int, ...]) -> Path:
        return self.folder / f"{self._name}-{content_hash(repr((stamp, self.reading)).encode())}.npy"
