"""Parquet files, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ally.errors import DataError, MissingPart
from ally.sources.paths import ensure_readable, file_stamp
from ally.sources.rows.base import BadRow, Row

BATCH = 1024


def pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingPart("reading and writing .parquet needs pyarrow: pip install 'ally-learn[parquet]'") from error
    return pyarrow.parquet


class ParquetRows:
    """Rows are found again by their number; one row group, the last that was read, is held in memory."""

    def __init__(self, path: Path) -> None:
        ensure_readable(path)
        self._path = path
        with self._open() as file:
            self._columns = tuple(file.schema_arrow.names)
            sizes = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        repeated = next((name for name in self._columns if self._columns.count(name) > 1), None)
        if repeated is not None:
            raise DataError(f"{path} has the column {repeated!r} more than once; give every column its own name")
        self._ends = np.cumsum(sizes)
        self._held: tuple[int, Any] | None = None
        if not sum(sizes):
            raise DataError(f"{path} has no rows; give a table with samples")

    @property
    def written(self) -> bool:
        return False

    @property
    def place(self) -> str:
        return str(self._path)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def stamp(self) -> tuple[int, ...]:
        return file_stamp(self._path)

    def scan(self) -> Iterator[Row | BadRow]:
        number = 0
        with self._open() as file:
            batches = file.iter_batches(batch_size=BATCH)
            while (batch := self._try(lambda: next(batches, None))) is not None:
                for values in batch.to_pylist():
                    yield Row(number, f"row {number + 1}", values)
                    number += 1

    def at(self, places: Sequence[int]) -> list[dict[str, Any] | str]:
        wanted = np.asarray(places, dtype=np.int64)
        groups = np.searchsorted(self._ends, wanted, side="right")
        found: list[dict[str, Any] | str] = ["the file is shorter than before"] * len(wanted)
        for group in np.unique(groups[groups < len(self._ends)]).tolist():
            mine = np.flatnonzero(groups == group)
            start = int(self._ends[group - 1]) if group else 0
            for place, values in zip(
                mine.tolist(), self._group(group).take(wanted[mine] - start).to_pylist(), strict=True
            ):
                found[place] = values
        return found

    def _group(self, number: int) -> Any:
        if self._held is None or self._held[0] != number:
            self._held = None
            with self._open() as file:
                self._held = number, self._try(lambda: file.read_row_group(number))
        return self._held[1]

    def _open(self) -> Any:
        parquet = pyarrow_parquet()
        return self._try(lambda: parquet.ParquetFile(self._path))

    def _try(self, work: Callable[[], Any]) -> Any:
        from pyarrow import ArrowException

        try:
            return work()
        except (ArrowException, OSError, ValueError) as error:
            raise DataError(f"{self._path} cannot be read as Parquet ({error}); write it again") from error
