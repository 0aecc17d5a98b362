"""Vectors of the user's own, aligned with the samples by id."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ally.errors import DataError, IdError
from ally.sources.by_id import ById
from ally.sources.columns import as_number
from ally.sources.identity import Index, Seen, id_keys
from ally.sources.paths import ensure_readable
from ally.sources.rows import TABLES, Row, open_rows
from ally.types import AnyArray


class Embeddings:
    """`values` (n, d) of numbers, or a memory map of them, and the ids of their rows."""

    def __init__(self, values: AnyArray, ids: Sequence[str]) -> None:
        if values.ndim < 2 or values.dtype.kind not in "fiub":
            raise DataError(
                f"the embeddings have shape {values.shape} and dtype {values.dtype}; one row of numbers per sample is "
                "needed"
            )
        if len(values) != len(ids):
            raise DataError(
                f"there are {len(values)} embeddings and {len(ids)} ids; give one id per row, in the same order"
            )
        seen, index = Seen(), Index()
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
        return ById(ids, self.shape, self.load)

    def load(self, ids: Sequence[str]) -> AnyArray:
        places, there = self._index.find(id_keys(ids))
        if not there.all():
            raise IdError(f"the id {ids[int(np.argmin(there))]!r} has no embedding; add it to the embeddings")
        values = np.asarray(self._values[places])
        return values if values.dtype.kind == "f" else values.astype(np.float64)


def open_embeddings(place: Any, id_column: str | None = None) -> Embeddings:
    """From a table with an id column and numbers, an .npz file with ``X`` and ``ids``, a mapping, or a pair (array,
    ids) of either kind."""
    if isinstance(place, Embeddings):
        return place
    if isinstance(place, Mapping):
        return Embeddings(np.asarray(list(place.values())), [str(id) for id in place])
    if isinstance(place, (tuple, list)) and len(place) == 2:
        return Embeddings(read_array(place[0]), read_ids(place[1]))
    if not isinstance(place, (str, Path)):
        raise DataError(
            f"embeddings is a {type(place).__name__}; pass a file, a pair (array, ids) or a mapping from ids to vectors"
        )
    path = Path(place)
    if path.suffix.lower() in TABLES:
        return _from_table(path, id_column)
    if path.suffix.lower() == ".npz":
        ensure_readable(path)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return Embeddings(arrays["X"], _texts(arrays["ids"], path))
        except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(
                f"{path} cannot be read as embeddings ({error}); save the vectors as X and their ids as ids"
            ) from error
    raise DataError(
        f"{path} has no ids; pass embeddings=({path.name!r}, ids), an .npz file with X and ids, or a table with an id "
        "column"
    )


def read_array(place: Any) -> AnyArray:
    """An array, or a memory map of an .npy file. Nothing is unpickled."""
    if not isinstance(place, (str, Path)):
        return np.asarray(place)
    ensure_readable(Path(place))
    try:
        found: AnyArray = np.load(place, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError) as error:
        raise DataError(
            f"{place} is not a whole .npy file of numbers; save it again by numpy.save, as an array without objects"
        ) from error
    return found


def read_ids(place: Any) -> list[str]:
    """Ids from a sequence, an .npy file, or a text file with one id a line."""
    if not isinstance(place, (str, Path)):
        return [str(id) for id in place]
    path = Path(place)
    if path.suffix.lower() == ".npy":
        return _texts(read_array(path), path)
    ensure_readable(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error.reason} at byte {error.start}); convert it to UTF-8") from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _texts(ids: AnyArray, path: Path) -> list[str]:
    if ids.ndim != 1 or ids.dtype.kind not in "iuUS":
        raise DataError(
            f"the ids of {path} have shape {ids.shape} and dtype {ids.dtype}; a row of texts or whole numbers is needed"
        )
    return [str(id) for id in (ids.astype(str) if ids.dtype.kind == "S" else ids).tolist()]


def _from_table(path: Path, id_column: str | None) -> Embeddings:
    rows = open_rows(path)
    name = id_column or next((name for name in ("id", "ID", "Id", "name") if name in rows.columns), None)
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
