"""A folder of images: the id of an image is its path below the folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from ally.data.embeddings import Embeddings
from ally.data.folders import FolderSamples
from ally.data.images.thumbnails import NEUTRAL, Thumbnails, check_image
from ally.data.kinds import KINDS, SampleKind, SourceRequest
from ally.data.paths import MIME, PICTURES, inside, os_reason
from ally.data.problems import Problems
from ally.data.samples import Shown
from ally.errors import DataError
from ally.types import AnyArray


class ImageFolder(FolderSamples):
    """Images in `folder` and, if `recursive`, below it. With `label` ``"folder"`` the first folder an image lies in is
    its label."""

    endings = tuple(MIME)

    def __init__(
        self,
        folder: Path,
        *,
        recursive: bool = True,
        label: str | None = None,
        thumbnails: Thumbnails = Thumbnails(),
        embeddings: Embeddings | None = None,
    ) -> None:
        super().__init__(folder, recursive=recursive, label=label, embeddings=embeddings)
        self._thumbnails = thumbnails

    @classmethod
    def open(cls, request: SourceRequest) -> Self:
        samples = super().open(request)
        samples._thumbnails = open_thumbnails(request)
        return samples

    @property
    def kind(self) -> SampleKind:
        return KINDS["images"]

    @property
    def notes(self) -> tuple[str, ...]:
        side = self._thumbnails.side
        return super().notes or (f"the learner reads the middle square of every image, scaled to {side}×{side}",)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._thumbnails.shape

    def read_file(self, path: Path) -> AnyArray:
        return self._thumbnails.read(path)

    def hash_file(self, path: Path) -> str:
        return check_image(path)

    def show_file(self, id: str, path: Path) -> Shown:
        ending = path.suffix.lower()
        return Shown(id, path=path, mime=MIME[ending if ending in MIME else Path(id).suffix.lower()])

    def why_skipped(self, name: str) -> str | None:
        if os.path.splitext(name)[1].lower() in PICTURES:
            return "pictures of this kind are not read; save it as PNG or JPEG"
        return None

    def contents(self, ids: Sequence[str]) -> list[str | Path | None]:
        return [self._path(id) for id in ids]

    def fingerprint(self, *, learned: bool = True) -> dict[str, Any]:
        kept = {**super().fingerprint(learned=learned), "from": "folder"}
        del kept["own"]
        return kept if self._embeddings is not None else {**kept, "size": self._thumbnails.side}

    def _path(self, id: str) -> Path | None:
        try:
            return inside(self.folder, id)
        except DataError as error:
            self.problems.add(id, "unreadable", str(error))
            return None

    def _load(self, ids: Sequence[str]) -> AnyArray:
        return load_images(self.folder, ids, ids, self._thumbnails, self.problems)


def open_thumbnails(request: SourceRequest) -> Thumbnails:
    """Images of the size that is asked for, or that they had before."""
    size = request.options.get("size", Thumbnails().side)
    return Thumbnails(int((request.known or {}).get("size", size)), request.cache)


def load_images(
    folder: Path, names: Sequence[str], ids: Sequence[str], thumbnails: Thumbnails, problems: Problems
) -> AnyArray:
    """(n, 3, side, side) float32; an image that cannot be read is gray, and recorded."""
    values = np.full((len(names), *thumbnails.shape), NEUTRAL, np.float32)
    for position, name in enumerate(names):
        pixels = _attempt(folder, name, thumbnails)
        if isinstance(pixels, str):
            problems.add(ids[position], "unreadable", pixels)
        else:
            values[position] = pixels
    return values


def _attempt(folder: Path, name: str, thumbnails: Thumbnails) -> AnyArray | str:
    """The pixels, or why there are none."""
    try:
        return thumbnails.read(inside(folder, name))
    except DataError as error:
        return str(error)
    except OSError as error:
        return os_reason(error)
