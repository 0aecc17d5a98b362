"""A folder of images: the id of an image is its path below the folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.base import Source
from ally.data.embeddings import Embeddings
from ally.data.identity import odd_id
from ally.data.images.thumbnails import NEUTRAL, Thumbnails, check_image
from ally.data.paths import MIME, PICTURES, inside, is_image, os_reason, text_of
from ally.data.problems import Problems
from ally.data.samples import ById, Kind, Sample, Shown, ensure_none_gone, note_gone
from ally.errors import DataError, IdError, InputError
from ally.types import AnyArray


class ImageFolder:
    """Images in `folder` and, if `recursive`, below it. With `label` ``"folder"`` the first folder an image lies in is
    its label.

    Hidden files and folders are not looked at; links to folders are not followed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        recursive: bool = True,
        label: str | None = None,
        thumbnails: Thumbnails = Thumbnails(),
        embeddings: Embeddings | None = None,
    ) -> None:
        if label not in (None, "folder"):
            raise InputError.about(
                "label", label, "is not known for a folder of images; use 'folder' if its subfolders are classes"
            )
        self.folder = folder
        self.problems = Problems()
        self._recursive = recursive
        self._label = label
        self._thumbnails = thumbnails
        self._embeddings = embeddings

    @property
    def kind(self) -> Kind:
        return "images"

    @property
    def notes(self) -> tuple[str, ...]:
        if self._embeddings is not None:
            return (f"the learner reads embeddings of {self._embeddings.shape[0]} numbers",)
        side = self._thumbnails.side
        return (f"the learner reads the middle square of every image, scaled to {side}×{side}",)

    def columns(self) -> dict[str, str]:
        return {}

    def scan(self) -> Iterator[Sample]:
        self.problems.clear()
        found = 0
        for id in self._names():
            content, problem = self._checked(id)
            if problem is not None:
                self.problems.add(id.encode("utf-8", "backslashreplace").decode(), "unreadable", problem)
                continue
            found += 1
            top, slash, _ = id.partition("/")
            yield Sample(id, content, text_of(top) if self._label and slash else None)
        if not found:
            put = f"put images into it: {', '.join(MIME)}"
            if not len(self.problems):
                where = "" if self._recursive else " itself (subfolders are ignored)"
                raise DataError(f"there are no images in the folder {self.folder}{where}; {put}")
            why = f"{len(self.problems)} cannot be read: {self.problems.first}"
            raise DataError(f"{self.folder} has no image that can be read ({why}); {put}")

    def show(self, id: str) -> Shown:
        try:
            if not is_image(id):
                raise DataError(f"{id!r} is not the name of an image")
            path = inside(self.folder, id)
        except DataError as error:
            raise IdError(f"no image {id!r} in {self.folder}: {error}") from error
        return Shown(
            id,
            path=path,
            mime=MIME[path.suffix.lower()] if path.suffix.lower() in MIME else MIME[Path(id).suffix.lower()],
        )

    def missing(self, ids: Sequence[str]) -> list[str]:
        return note_gone(ids, map(self._there, ids), self.problems)

    def features(self, ids: Sequence[str]) -> Source:
        ensure_none_gone(self.missing(ids), ids, self.folder)
        if self._embeddings is not None:
            return self._embeddings.of(ids)
        return ById(ids, self._thumbnails.shape, self._load)

    def contents(self, ids: Sequence[str]) -> list[str | Path | None]:
        return [self._path(id) for id in ids]

    def fingerprint(self, *, learned: bool = True) -> dict[str, Any]:
        kept: dict[str, Any] = {
            "version": 1,
            "kind": "images",
            "from": "folder",
            "recursive": self._recursive,
            "label": self._label,
        }
        if self._embeddings is not None:
            return {**kept, "embeddings": list(self._embeddings.shape)}
        return {**kept, "size": self._thumbnails.side}

    def _checked(self, id: str) -> tuple[str | None, str | None]:
        """The hash of an image, or why it is no sample."""
        problem = odd_id(id) or (None if self._embeddings is None else self._embeddings.problem(id))
        try:
            return (check_image(inside(self.folder, id)), None) if problem is None else (None, problem)
        except DataError as error:
            return None, str(error)

    def _names(self) -> Iterator[str]:
        def unreadable(error: OSError) -> None:
            place = os.path.relpath(error.filename, self.folder) if error.filename else "."
            self.problems.add(place, "unreadable", f"the folder cannot be opened ({os_reason(error)})")

        for here, folders, files in os.walk(self.folder, onerror=unreadable):
            prefix = Path(here).relative_to(self.folder).as_posix()
            prefix = "" if prefix == "." else f"{prefix}/"
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in folders:
                if os.path.islink(os.path.join(here, name)):
                    self.problems.add(
                        f"{prefix}{name}", "skipped", "it is a link to a folder, and such links are not followed"
                    )
                elif is_image(name):
                    self.problems.add(f"{prefix}{name}", "skipped", "it is a folder that is named like an image")
            if not self._recursive:
                folders.clear()
            for name in sorted(name for name in files if not name.startswith(".")):
                if is_image(name):
                    yield f"{prefix}{name}"
                elif os.path.splitext(name)[1].lower() in PICTURES:
                    reason = "pictures of this kind are not read; save it as PNG or JPEG"
                    self.problems.add(f"{prefix}{name}", "skipped", reason)

    def _there(self, id: str) -> bool:
        if self._embeddings is not None and id not in self._embeddings:
            return False
        try:
            inside(self.folder, id)
        except DataError:
            return False
        return is_image(id)

    def _path(self, id: str) -> Path | None:
        try:
            return inside(self.folder, id)
        except DataError as error:
            self.problems.add(id, "unreadable", str(error))
            return None

    def _load(self, ids: Sequence[str]) -> AnyArray:
        return load_images(self.folder, ids, ids, self._thumbnails, self.problems)


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
