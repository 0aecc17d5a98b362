"""Tables in memory: pandas and Polars frames, Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ally.data.base import blocks
from ally.data.tables.base import BadRow, Row, Rows, check_columns
from ally.errors import InputError


def is_frame(value: Any) -> bool:
    return type(value).__module__.split(".")[0] in ("pandas", "polars", "pyarrow") and hasattr(value, "columns")


class FrameRows(Rows):
    def __init__(self, frame: Any) -> None:
        if hasattr(frame, "collect"):
            raise InputError(f"the source is a {type(frame).__name__}; pass its .collect()")
        self._frame = frame.to_pandas() if type(frame).__module__.startswith("pyarrow") else frame
        self.index = _index_name(self._frame)
        if self.index is not None:
            self._frame = self._frame.reset_index(names=self.index)
        self.source = f"the {type(self._frame).__module__.split('.')[0]} frame"
        self.columns = check_columns([str(name) for name in self._frame.columns], self.source)
        if not len(self._frame):
            raise InputError("the frame has no rows; give at least one sample")

    def stamp(self) -> tuple[int, ...]:
        return (len(self._frame),)

    def scan(self) -> Iterator[Row | BadRow]:
        for batch in blocks(len(self._frame)):
            numbers = range(batch.start, batch.stop)
            for number, values in zip(numbers, self._take(numbers), strict=True):
                yield Row(number, f"row {number + 1}", values)

    def at(self, positions: Sequence[int]) -> list[dict[str, Any] | str]:
        return list(self._take([int(position) for position in positions]))

    def find_repeated(self, name: str) -> str | None:
        """The first row whose value in a column is missing, or was there before; None if all differ."""
        import pandas as pd

        column = pd.Series(self._frame[name].to_list(), dtype=object)
        texts = column.astype(str)
        odd = column.isna() | (texts == "") | texts.duplicated()
        return f"row {int(odd.argmax()) + 1}" if odd.any() else None

    def _take(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        if hasattr(self._frame, "iter_rows"):
            return [dict(zip(self.columns, values, strict=True)) for values in self._frame[list(rows)].iter_rows()]
        part = self._frame.iloc[list(rows)]
        lists = [part.iloc[:, number].tolist() for number in range(len(self.columns))]
        return [dict(zip(self.columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _index_name(frame: Any) -> str | None:
    index = getattr(frame, "index", None)
    if index is None or index.nlevels > 1:
        return None
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return None
    name = str(index.name or "index")
    return name if name not in map(str, frame.columns) else None
