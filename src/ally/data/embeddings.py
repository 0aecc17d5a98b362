"""The user's own vectors: matched to samples by id for a campaign, by row for a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ally.data.arrays.array_files import open_arrays
from ally.data.arrays.convert import as_source
from ally.data.arrays.samples import read_array, read_ids, texts_of
from ally.data.base import Source
from ally.data.identity import Index, SeenIds, id_keys
from ally.data.samples import ById, Samples
from ally.data.tables import TABLES, Row, Rows, open_rows
from ally.data.tables.columns import as_number
from ally.data.tables.frames import FrameRows, is_frame
from ally.data.tables.layout import ID_NAMES
from ally.errors import DataError, IdError, InputError, NonFiniteInput
from ally.types import AnyArray, IntArray


class Embeddings:
    """`values` (n, d) of numbers, or a memory map of them, and the ids of their rows."""

    def __init__(self, values: AnyArray, ids: Sequence[str]) -> None:
        if values.ndim < 2 or values.dtype.kind not in "fiub":
            raise DataError(
                f"the embeddings have shape {values.shape} and dtype {values.dtype}; give one row of numbers per sample"
            )
        if len(values) != len(ids):
            raise DataError(
                f"there are {len(values)} embeddings and {len(ids)} ids; give one id per row, in the same order"
            )
        seen, index = SeenIds(), Index()
        for row, id in enumerate(ids):
            if not seen.add(id):
                raise IdError(f"the id {id!r} has more than one embedding; keep one")
            index.add(id, row)
        self._values = values
        self._index = index.close()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._values.shape[1:])

    def __contains__(self, id: str) -> bool:
        return bool(self._index.find(id_keys([id]))[1][0])

    def problem(self, id: str) -> str | None:
        """Why a sample cannot be learned from, or None."""
        places, there = self._index.find(id_keys([id]))
        if not there[0]:
            return "it has no embedding"
        if self._values.dtype.kind == "f" and not np.isfinite(self._values[places[0]]).all():
            return "its embedding holds NaN or infinity"
        return None

    def of(self, ids: Sequence[str]) -> ById:
        return ById(ids, self.shape, self.load, vectors=True)

    def load(self, ids: Sequence[str]) -> AnyArray:
        places, there = self._index.find(id_keys(ids))
        if not there.all():
            raise IdError(f"the id {ids[int(np.argmin(there))]!r} has no embedding; add it to the embeddings")
        values = np.asarray(self._values[places])
        return values if values.dtype.kind == "f" else values.astype(np.float64)


def open_embeddings(place: Any, id_column: str | None = None) -> Embeddings:
    """From a table with an id column and numbers, a frame with such a column or ids as its index, an .npz file with
    ``X`` and ``ids``, a mapping, or a pair (array, ids) of either kind."""
    if isinstance(place, Embeddings):
        return place
    if isinstance(place, Mapping):
        return Embeddings(np.asarray(list(place.values())), [str(id) for id in place])
    if isinstance(place, (tuple, list)) and len(place) == 2:
        return Embeddings(read_array(place[0]), read_ids(place[1]))
    if is_frame(place):
        return _from_table(FrameRows(place), id_column)
    if not isinstance(place, (str, Path)):
        raise DataError(
            f"embeddings is a {type(place).__name__}; pass a file, a frame with ids, a pair (array, ids) or a mapping "
            "from ids to vectors"
        )
    path = Path(place)
    if path.suffix.lower() in TABLES:
        return _from_table(open_rows(path), id_column)
    if path.suffix.lower() == ".npz":
        with open_arrays(path) as arrays:
            lost = next((name for name in ("X", "ids") if name not in arrays), None)
            if lost is not None:
                raise DataError(f"{path} has no {lost}; save the embeddings as X and the ids of their rows as ids")
            return Embeddings(arrays.read("X"), texts_of(arrays.read("ids"), path))
    raise DataError(
        f"{path} has no ids; pass embeddings=({path.name!r}, ids), an .npz file with X and ids, or a table with an id "
        "column"
    )


def is_aligned(place: Any) -> bool:
    """Whether these are vectors without ids: an array, a frame whose rows are only numbered, or an .npy file."""
    if is_frame(place):
        rows = FrameRows(place)
        return rows.index is None and not any(name in rows.columns for name in ID_NAMES)
    return isinstance(place, np.ndarray) or (isinstance(place, (str, Path)) and Path(place).suffix.lower() == ".npy")


def align_vectors(vectors: Any, place: Any, samples: Samples) -> tuple[AnyArray, list[str]]:
    """Vectors with the ids of the samples in their order; raises unless there is one for each."""
    values = read_array(vectors if not is_frame(vectors) else vectors.to_numpy())
    ids = [sample.id for sample in samples.scan()]
    left = samples.problems.counts["unreadable"] + samples.problems.counts["duplicate"]
    if len(values) != len(ids) or left:
        more = f", and {left} that are left out" if left else ""
        raise DataError(
            f"there are {len(values)} embeddings, and {place} has {len(ids)} samples{more}; give one for each, in "
            "their order, or their ids beside them (--ids)"
        )
    return values, ids


def _from_table(rows: Rows, id_column: str | None) -> Embeddings:
    path, name = rows.source, id_column or rows.index or next((name for name in ID_NAMES if name in rows.columns), None)
    if name not in rows.columns:
        raise DataError(f"{path} has no column {name or 'id'!r}; its columns are {', '.join(rows.columns[:20])}")
    numbers = [column for column in rows.columns if column != name]
    ids, values = [], []
    for row in rows.scan():
        if not isinstance(row, Row):
            raise DataError(f"{row.name} of {path}: {row.reason}")
        vector = [as_number(row.values.get(column)) for column in numbers]
        odd = next(
            (column for column, value in zip(numbers, vector, strict=True) if value is None or not np.isfinite(value)),
            None,
        )
        if odd is not None:
            raise DataError(
                f"{row.name} of {path} holds {row.values.get(odd)!r} in column {odd!r}; embeddings must be finite "
                "numbers"
            )
        ids.append(str(row.values.get(name)))
        values.append(np.asarray(vector, np.float32))
    if not values or not numbers:
        raise DataError(
            f"{path} holds no embeddings; it needs a column {name!r} and columns of numbers, one row per sample"
        )
    return Embeddings(np.stack(values), ids)


LARGEST = 1e15
"""Above this a sum of squares may overflow in single precision."""


@dataclass(frozen=True)
class Vectors:
    """Vectors by row of the pool, read in single precision and checked as they are read. Nothing is copied whole."""

    source: Source

    @property
    def shape(self) -> tuple[int, ...]:
        """(d,)"""
        return self.source.shape

    def read(self, rows: IntArray) -> NDArray[np.float32]:
        """(len(rows), d)."""
        values = self.source.read(rows)
        bad = ~(np.abs(values) <= LARGEST)
        if bad.any():
            row, number = np.argwhere(bad)[0]
            value = values[row, number]
            where = f"embeddings= holds {value} at row {rows[row]}, column {self.source.column(int(number))}"
            if np.isfinite(value):
                problem = f"{where}: too large to square in single precision; rescale to below {LARGEST:g}"
                raise InputError(problem).at(rows[row])
            raise NonFiniteInput(f"{where}; give finite vectors, or leave the row out through `candidates`").at(
                rows[row]
            )
        return values.astype(np.float32)


def open_vectors(embeddings: Any, samples: int) -> Vectors:
    """The user's ``embeddings=`` for a pool of this many samples: anything that `as_source` takes, one vector per
    row."""
    source = as_source(embeddings, "embeddings=")
    if len(source) != samples:
        raise InputError(
            f"embeddings= has {len(source)} rows and the pool {samples} samples; give one vector for each, in the "
            "same order"
        )
    if len(source.shape) != 1:
        shape = (len(source), *source.shape)
        raise InputError(f"embeddings= has shape {shape}; give one vector per sample: reshape to ({samples}, d)")
    return Vectors(source)
