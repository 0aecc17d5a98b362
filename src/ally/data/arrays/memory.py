"""What users hold in memory or in a memory map, as a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ally.data.arrays.carried import FileMap, file_map
from ally.data.base import Source
from ally.errors import InputError
from ally.types import AnyArray, IntArray


class ArraySource(Source):
    """A numeric array or memory map of shape ``(n, *shape)``. Integers are read as floats that hold them exactly."""

    def __init__(
        self,
        array: AnyArray,
        columns: Sequence[str] | None = None,
        name: str = "X",
        *,
        vectors: bool = False,
        words: Source | None = None,
    ) -> None:
        if array.ndim < 2:
            raise InputError(f"{name} has shape {array.shape}; pass one row per sample: reshape to (n, features)")
        if 0 in array.shape[1:]:
            raise InputError(
                f"{name} has shape {array.shape}: the samples have 0 feature(s), while a minimum of 1 is required"
            )
        if np.iscomplexobj(array):
            raise InputError(f"{name} has dtype {array.dtype}. Complex data not supported: pass real features")
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"{name} has dtype {array.dtype}; features must be numbers: encode text and categories first"
            )
        self._array = array
        self.names = () if columns is None else tuple(columns)
        self.vectors = vectors
        self.words = words
        self.divisible = words is None or words.divisible
        self.by_path = file_map(array) is not None

    def part(self, run: slice) -> ArraySource:
        """A run of the rows, not copied."""
        words = None if self.words is None else self.words.part(run)
        return ArraySource(self._array[run], self.names or None, vectors=self.vectors, words=words)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": file_map(self._array) or self._array}

    def __setstate__(self, state: dict[str, Any]) -> None:
        array = state["_array"]
        self.__dict__ = {**state, "_array": array.open() if isinstance(array, FileMap) else array}

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape[1:])

    def __len__(self) -> int:
        return int(self._array.shape[0])

    def read(self, rows: IntArray) -> AnyArray:
        return _as_float(np.asarray(self._array[rows]))


class SparseSource(Source):
    """A scipy sparse matrix or array; rows become dense as they are read."""

    sparse = True
    divisible = True

    def __init__(self, matrix: Any, name: str = "X") -> None:
        if matrix.ndim != 2:
            raise InputError(f"{name} is sparse with shape {matrix.shape}; pass a 2-d sparse matrix")
        self._matrix = matrix.tocsr()
        if self._matrix.dtype.kind not in "fiub":
            raise InputError(f"{name} has dtype {self._matrix.dtype}. Complex data not supported: pass real features")

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self._matrix.shape[1]),)

    def __len__(self) -> int:
        return int(self._matrix.shape[0])

    def read(self, rows: IntArray) -> AnyArray:
        return _as_float(self._matrix[rows].toarray())

    def take(self, rows: IntArray) -> Any:
        """The rows as a sparse matrix."""
        return self._matrix[rows]

    def part(self, run: slice) -> SparseSource:
        return SparseSource(self._matrix[run])


class DatasetSource(Source):
    """A data set whose items are arrays of numbers of one shape. Integer tensors (tokens) stay integers."""

    def __init__(self, items: Any) -> None:
        self._items = items
        self._length = len(items)
        self._shape = self._item(0).shape if self._length else (1,)

    def _item(self, row: int) -> AnyArray:
        item = self._items[row]
        value = tensor_to_numpy(item) if is_tensor(item) else np.asarray(item)
        if value.dtype.kind not in "fiub":
            raise InputError(
                f"sample {row} of the data set is a {type(item).__name__}; items must be numbers x, (x, label) or "
                "dictionaries of columns; collate= takes a function that makes them so"
            )
        return value if value.ndim else value[None]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def __len__(self) -> int:
        return self._length

    def read(self, rows: IntArray) -> AnyArray:
        if not len(rows):
            return np.empty((0, *self._shape), dtype=np.float32)
        items = [self._item(int(row)) for row in rows]
        odd = next((k for k, item in enumerate(items) if item.shape != self._shape), None)
        if odd is not None:
            raise InputError(
                f"sample {rows[odd]} has shape {items[odd].shape}, the first one {self._shape}; make all samples one "
                "shape"
            )
        return np.stack(items)


Channels: TypeAlias = Literal["auto", "first", "last"]
"""Where the channels of images are."""
FEWEST_PIXELS = 8
"""Sides of an image below which its last axis is not taken for channels."""


class ChannelsFirst(Source):
    """Images (h, w, c) of another source as networks take them: (c, h, w)."""

    def __init__(self, source: Source, said: bool = False) -> None:
        self._source = source
        self.by_path, self.divisible = source.by_path or not source.divisible, source.divisible
        height, width, channels = source.shape
        self.notes = (
            ()
            if said
            else (
                f"samples of shape ({height}, {width}, {channels}) are taken as images with {channels} channels, which "
                "come last; channels='first' (--channels) if the first axis holds them",
            )
        )

    @property
    def shape(self) -> tuple[int, ...]:
        height, width, channels = self._source.shape
        return channels, height, width

    def __len__(self) -> int:
        return len(self._source)

    def part(self, run: slice) -> ChannelsFirst:
        return ChannelsFirst(self._source.part(run), True)

    def read(self, rows: IntArray) -> AnyArray:
        return np.ascontiguousarray(np.moveaxis(self._source.read(rows), -1, 1))

    def column(self, number: int) -> str:
        channels, height, width = self.shape
        channel, rest = divmod(number, height * width)
        return self._source.column(rest * channels + channel)


def _as_float(values: AnyArray) -> AnyArray:
    """Native floats: single precision for one- and two-byte integers, double for wider ones, float types as they
    are."""
    if values.dtype.kind != "f":
        return values.astype(np.float32 if values.dtype.itemsize <= 2 else np.float64)
    return (
        values.astype(np.float64)
        if values.dtype.itemsize > 8
        else values.astype(values.dtype.newbyteorder("="), copy=False)
    )


def is_tensor(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "torch" and hasattr(X, "detach")


def tensor_to_numpy(X: Any, name: str = "X") -> AnyArray:
    if str(X.layout) != "torch.strided":
        raise InputError(
            f"{name} is a sparse tensor ({X.layout}); pass {name.rstrip('=')}.to_dense(), or a scipy sparse matrix"
        )
    narrow = X.is_floating_point() and X.dtype.itemsize <= 2
    array: AnyArray = (X.float() if narrow else X).detach().cpu().numpy()
    return array
