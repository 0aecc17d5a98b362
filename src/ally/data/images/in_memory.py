"""Pictures of Pillow in memory, read as those of a folder are; row numbers are their ids."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.arrays.samples import NUMBERED
from ally.data.base import Source
from ally.data.identity import content_hash
from ally.data.images.pixels import convert_pixels, find_orientation, scale_square, turn
from ally.data.images.thumbnails import Thumbnails
from ally.data.kinds import KINDS, SampleKind
from ally.data.paths import MIME
from ally.data.problems import Problems
from ally.data.samples import ById, Sample, Samples, Shown, ensure_none_gone, note_gone
from ally.errors import IdError
from ally.types import AnyArray


class PictureSamples(Samples):
    """`pictures` of any size; `labels`, if they are known, one for each; `notes`: what was decided about them."""

    def __init__(
        self,
        pictures: Any,
        thumbnails: Thumbnails = Thumbnails(),
        labels: Sequence[Any] | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.problems = Problems()
        self._pictures, self._labels, self._decided = pictures, labels, notes
        self._side, self._shown = thumbnails.side, None if thumbnails.cache is None else thumbnails.cache / "shown"

    @property
    def kind(self) -> SampleKind:
        return KINDS["images"]

    @property
    def notes(self) -> tuple[str, ...]:
        seen = f"the learner reads the middle square of every image, scaled to {self._side}×{self._side}"
        return NUMBERED, *self._decided, seen

    def scan(self) -> Iterator[Sample]:
        self.problems.clear()
        for row in range(len(self._pictures)):
            pixels = self._read_pixels(row)
            label = None if self._labels is None else self._labels[row]
            yield Sample(str(row), content_hash(repr(pixels.shape).encode(), pixels.tobytes()), label)

    def show(self, id: str) -> Shown:
        if not self._is_there(id):
            raise IdError(f"there is no picture {id!r}; ids are row numbers")
        if self._shown is None:
            folder = tempfile.TemporaryDirectory(prefix="ally-pictures-")
            weakref.finalize(self, folder.cleanup)
            self._shown = Path(folder.name)
        path = self._shown / f"{id}.png"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._pictures[int(id)].convert("RGB").save(path)
        return Shown(id, path=path, mime=MIME[".png"])

    def missing(self, ids: Sequence[str]) -> list[str]:
        return note_gone(ids, map(self._is_there, ids), self.problems)

    def features(self, ids: Sequence[str]) -> Source:
        ensure_none_gone(self.missing(ids), ids, "the pictures")
        return ById(ids, (3, self._side, self._side), self._load)

    def contents(self, ids: Sequence[str]) -> list[Any]:
        """The pixels (3, h, w) of each."""
        return [self._read_pixels(int(id)) for id in ids]

    def fingerprint(self, *, learned: bool = True) -> dict[str, Any]:
        kept = {"version": 1, "kind": "images", "from": "folder", "recursive": False, "label": None}
        return {**kept, "size": self._side, "numbered": True}

    def _is_there(self, id: str) -> bool:
        return id.isdecimal() and int(id) < len(self._pictures)

    def _load(self, ids: Sequence[str]) -> AnyArray:
        pixels = np.empty((len(ids), 3, self._side, self._side), np.uint8)
        for place, id in enumerate(ids):
            pixels[place] = scale_square(self._pictures[int(id)], self._side)
        return pixels

    def _read_pixels(self, row: int) -> AnyArray:
        picture = self._pictures[row]
        pixels = turn(convert_pixels(picture), find_orientation(picture))
        return np.ascontiguousarray(np.broadcast_to(pixels, (3, *pixels.shape[1:])))
