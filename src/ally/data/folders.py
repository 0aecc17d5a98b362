"""Folders in which every file of some kind is a sample: the id of a file is its path below the folder.

A kind of your own needs little more than `FolderSamples` with its `endings`, `shape`, `read_file` and `show_file`.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from ally.data.base import Source
from ally.data.embeddings import Embeddings
from ally.data.identity import content_hash, odd_id
from ally.data.kinds import SourceRequest
from ally.data.paths import inside, open_regular, os_reason, text_of
from ally.data.problems import Problems
from ally.data.samples import ById, Sample, Samples, Shown, ensure_none_gone, note_gone
from ally.errors import DataError, IdError, InputError
from ally.types import AnyArray

Value = TypeVar("Value")


class FolderSamples(Samples):
    """Files in `folder` and, if `recursive`, below it. With `label` ``"folder"`` the first folder a file lies in is its
    label.

    Hidden files and folders are not looked at; links to folders are not followed.
    """

    endings: ClassVar[tuple[str, ...]]
    """Of the names of files that are samples, in lower case."""
    neutral: ClassVar[float] = 0.0
    """What stands for a file that cannot be read any more."""

    def __init__(
        self,
        folder: Path,
        *,
        recursive: bool = True,
        label: str | None = None,
        embeddings: Embeddings | None = None,
    ) -> None:
        if label not in (None, "folder"):
            raise InputError.about(
                "label",
                label,
                f"is not known for a folder of {self.kind.words[1]}; use 'folder' if its subfolders are classes",
            )
        self.folder = folder
        self.problems = Problems()
        self._recursive = recursive
        self._label = label
        self._embeddings = embeddings

    @classmethod
    def open(cls, request: SourceRequest) -> Self:
        """The samples of a folder as `open_source` was asked for them, or as they were before."""
        given = request.options if request.known is None else request.known
        return cls(
            Path(request.place),
            recursive=bool(given.get("recursive", True)),
            label=given.get("label"),
            embeddings=request.vectors,
        )

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of what `read_file` gives."""

    @abstractmethod
    def read_file(self, path: Path) -> AnyArray:
        """What a learner reads of a file. Whatever it raises is the reason why the file cannot be read."""

    @abstractmethod
    def show_file(self, id: str, path: Path) -> Shown:
        """What a person sees of a file."""

    def hash_file(self, path: Path) -> str:
        """Changes with the content. Raises `DataError` if the file cannot be read."""
        self._attempt(path)
        with open_regular(path) as stream:
            return content_hash(stream.read())

    def is_sample(self, name: str) -> bool:
        return name.lower().endswith(self.endings)

    def why_skipped(self, name: str) -> str | None:
        """Why a file that is no sample is worth a line among the problems; None for most."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        if self._embeddings is not None:
            return (f"the learner reads embeddings of {self._embeddings.shape[0]} numbers",)
        return ()

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
            one, many = self.kind.words
            put = f"put {many} into it: {', '.join(self.endings)}"
            if not len(self.problems):
                where = "" if self._recursive else " itself (subfolders are ignored)"
                raise DataError(f"there are no {many} in the folder {self.folder}{where}; {put}")
            why = f"{len(self.problems)} cannot be read: {self.problems.first}"
            raise DataError(f"{self.folder} has no {one} that can be read ({why}); {put}")

    def show(self, id: str) -> Shown:
        try:
            if not self.is_sample(id):
                raise DataError(f"{id!r} is not the name of one")
            path = inside(self.folder, id)
        except DataError as error:
            raise IdError(f"no {self.kind.words[0]} {id!r} in {self.folder}: {error}") from error
        return self._explained(lambda: self.show_file(id, path))

    def missing(self, ids: Sequence[str]) -> list[str]:
        return note_gone(ids, map(self._there, ids), self.problems)

    def features(self, ids: Sequence[str]) -> Source:
        ensure_none_gone(self.missing(ids), ids, self.folder)
        if self._embeddings is not None:
            return self._embeddings.of(ids)
        return ById(ids, self.shape, self._load)

    def fingerprint(self, *, learned: bool = True) -> dict[str, Any]:
        kept = {**super().fingerprint(learned=learned), "recursive": self._recursive, "label": self._label}
        return kept if self._embeddings is None else {**kept, "embeddings": list(self._embeddings.shape)}

    def _checked(self, id: str) -> tuple[str | None, str | None]:
        """The hash of a file, or why it is no sample."""
        problem = odd_id(id) or (None if self._embeddings is None else self._embeddings.problem(id))
        try:
            return (self.hash_file(inside(self.folder, id)), None) if problem is None else (None, problem)
        except DataError as error:
            return None, str(error)

    def _names(self) -> Iterator[str]:
        def unreadable(error: OSError) -> None:
            place = os.path.relpath(error.filename, self.folder) if error.filename else "."
            self.problems.add(place, "unreadable", f"the folder cannot be opened ({os_reason(error)})")

        one = self.kind.words[0]
        alike = f"it is a folder that is named like {'an' if one[:1] in 'aeiou' else 'a'} {one}"
        for here, folders, files in os.walk(self.folder, onerror=unreadable):
            prefix = Path(here).relative_to(self.folder).as_posix()
            prefix = "" if prefix == "." else f"{prefix}/"
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in folders:
                if os.path.islink(os.path.join(here, name)):
                    self.problems.add(
                        f"{prefix}{name}", "skipped", "it is a link to a folder, and such links are not followed"
                    )
                elif self.is_sample(name):
                    self.problems.add(f"{prefix}{name}", "skipped", alike)
            if not self._recursive:
                folders.clear()
            for name in sorted(name for name in files if not name.startswith(".")):
                if self.is_sample(name):
                    yield f"{prefix}{name}"
                elif (reason := self.why_skipped(name)) is not None:
                    self.problems.add(f"{prefix}{name}", "skipped", reason)

    def _there(self, id: str) -> bool:
        if self._embeddings is not None and id not in self._embeddings:
            return False
        try:
            inside(self.folder, id)
        except DataError:
            return False
        return self.is_sample(id)

    def _load(self, ids: Sequence[str]) -> AnyArray:
        """(n, *shape); a file that cannot be read is neutral, and recorded."""
        values = np.full((len(ids), *self.shape), self.neutral, np.float32)
        for position, id in enumerate(ids):
            try:
                values[position] = self._attempt(inside(self.folder, id))
            except DataError as error:
                self.problems.add(id, "unreadable", str(error))
        return values

    def _attempt(self, path: Path) -> AnyArray:
        values = np.asarray(self._explained(lambda: self.read_file(path)), np.float32)
        if values.shape != self.shape or not np.isfinite(values).all():
            odd = f"shape {values.shape}, not {self.shape}" if values.shape != self.shape else "NaN or infinity"
            raise DataError(f"reading it gave {odd}")
        return values

    def _explained(self, read: Callable[[], Value]) -> Value:
        """What `read` gives. Whatever it raises becomes a `DataError` with the reason."""
        try:
            return read()
        except DataError:
            raise
        except OSError as error:
            raise DataError(os_reason(error)) from error
        except Exception as error:  # a reader of somebody's own may raise anything for a damaged file
            raise DataError(f"it cannot be read ({type(error).__name__}: {error})") from error
