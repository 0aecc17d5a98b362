"""Tables in memory: pandas and Polars frames, Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ally.data.tables.base import BadRow, Row
from ally.errors import InputError

BATCH = 1024


def is_frame(place: Any) -> bool:
    return type(place).__module__.split(".")[0] in ("pandas", "polars", "pyarrow") and hasattr(place, "columns")


class FrameRows:
    """`index` is the column that holds the index of a pandas frame, unless that only numbers the rows."""

    def __init__(self, frame: Any) -> None:
        if hasattr(frame, "collect"):
            raise InputError(f"the source is a {type(frame).__name__}; pass its .collect()")
        self._frame = frame.to_pandas() if type(frame).__module__.startswith("pyarrow") else frame
        self.index = _index_name(self._frame)
        if self.index is not None:
            self._frame = self._frame.reset_index(names=self.index)
        self._columns = tuple(str(name) for name in self._frame.columns)
        repeated = next((name for name in self._columns if self._columns.count(name) > 1), None)
        if repeated is not None:
            raise InputError(f"the frame has the column {repeated!r} more than once; give every column its own name")
        if not len(self._frame):
            raise InputError("the frame has no rows; give at least one sample")

    @property
    def written(self) -> bool:
        return False

    @property
    def place(self) -> str:
        return f"the {type(self._frame).__module__.split('.')[0]} frame"

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def stamp(self) -> tuple[int, ...]:
        return (len(self._frame),)

    def scan(self) -> Iterator[Row | BadRow]:
        for start in range(0, len(self._frame), BATCH):
            for number, values in enumerate(
                self._batch(range(start, min(start + BATCH, len(self._frame)))), start=start
            ):
                yield Row(number, f"row {number + 1}", values)

    def at(self, places: Sequence[int]) -> list[dict[str, Any] | str]:
        return list(self._batch([int(place) for place in places]))

    def find_repeated(self, name: str) -> str | None:
        """The first row whose value in a column is missing, or was there before; None if all differ."""
        import pandas as pd

        column = pd.Series(self._frame[name].to_list(), dtype=object)
        texts = column.astype(str)
        odd = column.isna() | (texts == "") | texts.duplicated()
        return f"row {int(odd.argmax()) + 1}" if odd.any() else None

    def _batch(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        if hasattr(self._frame, "iter_rows"):
            return [dict(zip(self._columns, values, strict=True)) for values in self._frame[list(rows)].iter_rows()]
        part = self._frame.iloc[list(rows)]
        lists = [part.iloc[:, number].tolist() for number in range(len(self._columns))]
        return [dict(zip(self._columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _index_name(frame: Any) -> str | None:
    index = getattr(frame, "index", None)
    if index is None or index.nlevels > 1:
        return None
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return None
    name = str(index.name or "index")
    return name if name not in map(str, frame.columns) else None
