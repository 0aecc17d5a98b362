"""A pool in a folder of parts: ``.npy`` arrays or Parquet files of numbers, in the order of their names.

Nothing is held but the numbers of rows. A part is opened where it is read, by its path, so that workers of an engine
read those that they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.arrays.array_files import map_array
from ally.data.arrays.carried import Carried
from ally.data.arrays.memory import ArraySource
from ally.data.tables.parquet import open_parquet
from ally.errors import DataError

KINDS = (".npy", ".parquet")


class PoolParts(Carried):
    """Samples of all parts, numbered through."""

    by_path = True


@dataclass(frozen=True)
class NpyPart:
    path: str

    def __call__(self) -> ArraySource:
        return ArraySource(map_array(Path(self.path)), name=self.path)


@dataclass(frozen=True)
class ParquetPart:
    """A row group of a file."""

    path: str
    group: int

    def __call__(self) -> ArraySource:
        with open_parquet(Path(self.path)) as file:
            table = file.read_row_group(self.group)
        odd = next((field for field in table.schema if not _is_number(field.type)), None)
        if odd is not None:
            raise DataError(
                f"{self.path} has the column {odd.name!r} ({odd.type}); the columns of parts must be numbers"
            )
        columns = [np.asarray(column.to_numpy(zero_copy_only=False), np.float64) for column in table.columns]
        return ArraySource(np.stack(columns, axis=1), table.schema.names, self.path)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def is_parts(folder: Path) -> bool:
    """Whether a folder holds parts of a pool."""
    return any(path.suffix.lower() in KINDS for path in folder.iterdir())


def open_parts(folder: Path) -> PoolParts:
    """Raises where parts differ in kind, or in the shape of a sample."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in KINDS)
    kinds = {path.suffix.lower() for path in files}
    if len(kinds) != 1:
        found = "both .npy and .parquet files" if kinds else "no .npy or .parquet files"
        raise DataError(f"{folder} holds {found}; a pool in parts is a folder of files of one of these kinds")
    runs: list[NpyPart | ParquetPart] = []
    sizes: list[int] = []
    shapes: list[tuple[Any, ...]] = []
    for path in map(str, files):
        try:
            if kinds == {".npy"}:
                array = map_array(Path(path))
                runs, sizes, shapes = [*runs, NpyPart(path)], [*sizes, len(array)], [*shapes, array.shape[1:]]
                continue
            with open_parquet(Path(path)) as file:
                for group in range(file.metadata.num_row_groups):
                    runs.append(ParquetPart(path, group))
                    sizes.append(file.metadata.row_group(group).num_rows)
                    shapes.append(tuple(file.schema_arrow.names))
        except (ValueError, OSError) as error:
            raise DataError(f"{path} cannot be read ({error}); write it again") from error
    odd = next((number for number, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is not None:
        raise DataError(
            f"{runs[odd].path} has samples of {shapes[odd]} and {runs[0].path} of {shapes[0]}; give all parts the same "
            "columns"
        )
    return PoolParts(runs[0](), runs, np.cumsum([0, *sizes]))
