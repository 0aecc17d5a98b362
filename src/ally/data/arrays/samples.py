"""Features without anything to look at: an array, or an .npy file that stays on disk, with ids of their own or row
numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ally.data.arrays.array_files import map_array, open_arrays
from ally.data.arrays.convert import as_source
from ally.data.arrays.gaps import FilledSource, find_gaps
from ally.data.arrays.memory import Channels
from ally.data.base import Source
from ally.data.given_labels import array_labels
from ally.data.identity import Index, SeenIds, content_hash, id_keys, odd_id
from ally.data.kinds import KINDS, SampleKind
from ally.data.paths import ensure_readable
from ally.data.problems import Problems
from ally.data.samples import ById, Sample, Samples, Shown, ensure_none_gone, note_gone
from ally.errors import DataError, IdError
from ally.types import AnyArray

SHOWN = 20
"""Numbers of a sample that a person is shown."""
NUMBERED = "ids are row numbers: add rows at the end only, or give ids"


class ArraySamples(Samples):
    """`values` (n, *shape). Without `ids` a sample is its row number: rows may then be added at the end, never
    moved."""

    def __init__(
        self,
        values: AnyArray,
        ids: Sequence[str] | None = None,
        place: str = "the array",
        channels: Channels = "auto",
        labels: Sequence[Any] | None = None,
        notes: tuple[str, ...] = (),
        known: Mapping[str, Any] | None = None,
    ) -> None:
        """`notes`: what was decided about the container; `known`: an earlier fingerprint."""
        self.source = as_source(values, place, channels=channels)
        """The values as they are."""
        if ids is not None and len(ids) != len(self.source):
            raise DataError(
                f"{place} has {len(self.source)} rows and there are {len(ids)} ids; give one id per row, in the "
                "same order"
            )
        self.problems = Problems()
        self.ids = ids
        self.labels = labels
        self._place = place
        named = f"the array y of {place} holds the labels (label='none', --label none if not)"
        self.decided = notes if labels is None or notes else (named,)
        self._known = known
        self._index: Index | None = None

    @property
    def kind(self) -> SampleKind:
        return KINDS["features"]

    @cached_property
    def filled(self) -> Source:
        """The values as learners see them: without missing numbers."""
        gaps = find_gaps(self.source) if self._known is None else self._known.get("gaps")
        return self.source if gaps is None else FilledSource(self.source, gaps)

    @property
    def notes(self) -> tuple[str, ...]:
        numbered = (NUMBERED,) if self.ids is None else ()
        return (*numbered, *self.decided, *self.filled.notes)

    def scan(self) -> Iterator[Sample]:
        self.problems.clear()
        seen, found = SeenIds(), 0
        for row, id in enumerate(self._all_ids()):
            odd = odd_id(id)
            if odd is not None:
                self.problems.add(f"row {row + 1}", "unreadable", odd)
            elif not seen.add(id):
                self.problems.add(
                    id,
                    "duplicate",
                    f"row {row + 1} repeats an earlier id and is left out; give every sample its own id",
                )
            else:
                values = np.ascontiguousarray(self.source.read(np.asarray([row]))[0])
                fine = ~np.isinf(values) if isinstance(self.filled, FilledSource) else np.isfinite(values)
                if not fine.all():
                    at = int(np.argmin(fine.ravel()))
                    self.problems.add(
                        id,
                        "unreadable",
                        f"row {row + 1} holds {values.ravel()[at]} in feature {at}; features must be finite",
                    )
                    continue
                found += 1
                yield Sample(id, content_hash(values.tobytes()), None if self.labels is None else self.labels[row])
        if not found:
            raise DataError(f"{self._place} has no sample that can be read ({self.problems.first}); correct the file")

    def show(self, id: str) -> Shown:
        places, there = self._where([id])
        if not there[0]:
            raise IdError(
                f"{self._place} has no sample {id!r}; ids are "
                f"{'row numbers' if self.ids is None else 'those of the ids file'}"
            )
        return Shown(
            id,
            columns={
                str(number): value
                for number, value in enumerate(self.source.read(places[:1])[0].ravel()[:SHOWN].tolist())
            },
        )

    def missing(self, ids: Sequence[str]) -> list[str]:
        return note_gone(ids, self._where(ids)[1].tolist(), self.problems)

    def features(self, ids: Sequence[str]) -> Source:
        ensure_none_gone(self.missing(ids), ids, self._place)
        filled = self.filled
        return ById(ids, filled.shape, lambda some: filled.read(self._where(some)[0]), sparse=self.source.sparse)

    def fingerprint(self, *, learned: bool = True) -> dict[str, Any]:
        kept: dict[str, Any] = {"version": 1, "kind": "features", "from": "array", "shape": list(self.source.shape)}
        filled = self.filled if learned else self.source
        return (
            kept | {"numbered": self.ids is None} | ({"gaps": filled.gaps} if isinstance(filled, FilledSource) else {})
        )

    def _all_ids(self) -> Iterator[str]:
        return iter(self.ids) if self.ids is not None else map(str, range(len(self.source)))

    def _where(self, ids: Sequence[str]) -> tuple[Any, Any]:
        if self._index is None:
            index, seen = Index(), SeenIds()
            for row, id in enumerate(self._all_ids()):
                if seen.add(id):
                    index.add(id, row)
            self._index = index.close()
        return self._index.find(id_keys(ids))


def is_array_file(path: str | Path) -> bool:
    return Path(path).suffix.lower() in (".npy", ".npz")


class ArrayFile(NamedTuple):
    """Features, and what an .npz file holds beside them: ids, and labels (None where there is none)."""

    X: Any
    ids: list[str] | None = None
    labels: list[Any] | None = None


def read_array_file(place: Any) -> ArrayFile:
    """Values in memory or in a folder of parts as they are, or those of an .npy or .npz file (X, ids, y)."""
    if not isinstance(place, (str, Path)) or Path(place).is_dir():
        return ArrayFile(place)
    if Path(place).suffix.lower() == ".npy":
        return ArrayFile(read_array(place))
    with open_arrays(Path(place)) as arrays:
        if "X" not in arrays:
            held = ", ".join(arrays.names[:SHOWN]) or "nothing"
            raise DataError(f"{place} holds {held}; save the features as X (and their ids as ids)")
        X = arrays.read("X")
        ids = texts_of(arrays.read("ids"), Path(place)) if "ids" in arrays else None
        return ArrayFile(X, ids, array_labels(arrays.read("y"), len(X), place) if "y" in arrays else None)


def read_array(place: Any) -> AnyArray:
    """An array, or a memory map of an .npy file. Nothing is unpickled."""
    return map_array(Path(place)) if isinstance(place, (str, Path)) else np.asarray(place)


def read_ids(place: Any) -> list[str]:
    """Ids from a sequence, an .npy file, or a text file with one id a line."""
    if not isinstance(place, (str, Path)):
        return [str(id) for id in place]
    path = Path(place)
    if path.suffix.lower() == ".npy":
        return texts_of(read_array(path), path)
    ensure_readable(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error.reason} at byte {error.start}); convert it to UTF-8") from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def texts_of(ids: AnyArray, path: Path) -> list[str]:
    if ids.ndim != 1 or ids.dtype.kind not in "iuUS":
        raise DataError(
            f"the ids of {path} have shape {ids.shape} and dtype {ids.dtype}; give a list of texts or whole numbers"
        )
    return [str(id) for id in (ids.astype(str) if ids.dtype.kind == "S" else ids).tolist()]
