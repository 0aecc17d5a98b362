"""Parquet files, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ally.data.base import BLOCK
from ally.data.damage import refuse_damage
from ally.data.paths import ensure_readable, file_stamp
from ally.data.size_limits import ensure_unpacked_fits
from ally.data.tables.base import GONE, BadRow, Row, Rows, check_columns
from ally.errors import DataError, MissingPart

Made = TypeVar("Made")
VALUE, ROW = 8, 64
"""Bytes that a value, and a row beside its values, take at least."""
DECODED = 2**30
"""Bytes of texts that may be repeated in all rows together, of which few are held at a time."""
LENGTH = 8
"""Bytes a value: a column that takes less keeps few texts, each for many rows."""


def pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingPart("reading and writing .parquet needs pyarrow: pip install 'ally-learn[parquet]'") from error
    return pyarrow.parquet


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A file whose groups of rows have sizes that can be held; what is raised while it is read is a `DataError`."""
    ensure_readable(path)
    parquet = pyarrow_parquet()
    with refuse_damage(f"{path} cannot be read as Parquet", "write it again"), parquet.ParquetFile(path) as file:
        groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
        ensure_unpacked_fits(path, max(map(_count_bytes, groups), default=0), path.stat().st_size)
        yield file


class ParquetRows(Rows):
    """Rows are found again by their number; one row group, the last that was read, is held in memory."""

    def __init__(self, path: Path) -> None:
        self._path, self.source = path, str(path)
        with open_parquet(path) as file:
            self.columns = check_columns(file.schema_arrow.names, path)
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        self._size = path.stat().st_size
        self._repeating = sorted({name for group in groups for name in _find_repeating(group)})
        self._ends = np.cumsum([group.num_rows for group in groups])
        self._decoded = 0
        self._group: tuple[int, Any] | None = None
        if not self._ends[-1:].any():
            raise DataError(f"{path} has no rows; give a table with samples")

    def stamp(self) -> tuple[int, ...]:
        return file_stamp(self._path)

    def scan(self) -> Iterator[Row | BadRow]:
        self._decoded = number = 0
        with self._open() as file:
            batches = file.iter_batches(batch_size=BLOCK)
            while (batch := self._try(lambda: next(batches, None))) is not None:
                for values in self._to_rows(batch):
                    yield Row(number, f"row {number + 1}", values)
                    number += 1

    def at(self, positions: Sequence[int]) -> list[dict[str, Any] | str]:
        wanted = np.asarray(positions, dtype=np.int64)
        groups = np.searchsorted(self._ends, wanted, side="right")
        rows: list[dict[str, Any] | str] = [GONE] * len(wanted)
        for group in np.unique(groups[groups < len(self._ends)]).tolist():
            mine = np.flatnonzero(groups == group)
            start = int(self._ends[group - 1]) if group else 0
            taken = self._read_group(group).take(wanted[mine] - start)
            values = (row for batch in taken.to_batches() for row in self._to_rows(batch))
            for number, row in zip(mine.tolist(), values, strict=True):
                rows[number] = row
        return rows

    def _read_group(self, number: int) -> Any:
        if self._group is None or self._group[0] != number:
            self._group = None
            with self._open() as file:
                self._group = number, self._try(lambda: file.read_row_group(number))
        return self._group[1]

    def _open(self) -> Any:
        return self._try(lambda: pyarrow_parquet().ParquetFile(self._path, read_dictionary=self._repeating))

    def _to_rows(self, batch: Any) -> list[dict[str, Any]]:
        def convert() -> list[dict[str, Any]]:
            from pyarrow import RecordBatch

            columns = [self._write_out(column) for column in batch.columns]
            rows: list[dict[str, Any]] = RecordBatch.from_arrays(columns, list(self.columns)).to_pylist()
            return rows

        return self._try(convert)

    def _write_out(self, column: Any) -> Any:
        """Texts that are kept once for many rows, once for each: a megabyte for every one of a million rows is a few
        bytes in the file."""
        from pyarrow import DictionaryArray, compute

        if not self._repeating or not isinstance(column, DictionaryArray):
            return column
        longest = compute.max(compute.binary_length(column.dictionary)).as_py() or 0
        ensure_unpacked_fits(self._path, longest * len(column), self._size)
        plain = column.dictionary_decode()
        self._decoded += compute.sum(compute.binary_length(plain)).as_py() or 0
        ensure_unpacked_fits(self._path, self._decoded, self._size, DECODED)
        return plain

    def _try(self, work: Callable[[], Made]) -> Made:
        with refuse_damage(f"{self._path} cannot be read as Parquet", "write it again"):
            return work()


def _count_bytes(group: Any) -> int:
    """What a group of rows takes in memory, by what the file says of it."""
    packed = sum(max(column.total_uncompressed_size, VALUE * column.num_values) for column in _list_columns(group))
    return int(max(packed, ROW * group.num_rows))


def _find_repeating(group: Any) -> list[str]:
    """Columns of texts that may be kept once for many rows, and would then take too much."""
    return [
        column.path_in_schema
        for column in _list_columns(group)
        if column.physical_type == "BYTE_ARRAY"
        and column.has_dictionary_page
        and column.total_uncompressed_size < LENGTH * column.num_values
    ]


def _list_columns(group: Any) -> list[Any]:
    return [group.column(number) for number in range(group.num_columns)]
