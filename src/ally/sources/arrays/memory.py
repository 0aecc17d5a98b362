"""What users hold in memory or in a memory map, as a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ally.errors import InputError
from ally.sources.base import Source
from ally.types import AnyArray, IntArray


class ArraySource:
    """A numeric array or memory map of shape ``(n, *shape)``. Integers are read as floats that hold them exactly."""

    def __init__(
        self, array: AnyArray, columns: Sequence[str] | None = None, name: str = "X", *, vectors: bool = False
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
        self._columns = columns
        self.vectors = vectors
        """Distances mean something: features share one scale."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape[1:])

    def __len__(self) -> int:
        return int(self._array.shape[0])

    def read(self, rows: IntArray) -> AnyArray:
        return _as_float(np.asarray(self._array[rows]))

    def column(self, number: int) -> str:
        return repr(self._columns[number]) if self._columns is not None else str(number)


class SparseSource:
    """A scipy sparse matrix or array; rows become dense as they are read."""

    sparse = True
    """Zeros mean absence: features share one scale and are not centred."""

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

    def column(self, number: int) -> str:
        return str(number)


class DatasetSource:
    """A map-style torch ``Dataset`` whose items are ``x`` or ``(x, ...)``. Integer tensors (tokens) stay integers."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._length = len(dataset)
        self._shape = self._item(0).shape if self._length else (1,)

    def _item(self, row: int) -> AnyArray:
        item = self._dataset[row]
        if isinstance(item, tuple) or (isinstance(item, list) and item and hasattr(item[0], "__len__")):
            item = item[0]
        value = _tensor_to_numpy(item) if _is_tensor(item) else np.asarray(item)
        if value.dtype.kind not in "fiub":
            raise InputError(
                f"sample {row} of the data set is a {type(item).__name__}; items must be numbers x, or (x, ...)"
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

    def column(self, number: int) -> str:
        return str(number)


Channels: TypeAlias = Literal["auto", "first", "last"]
"""Where the channels of images are."""
FEWEST_PIXELS = 8
"""Sides of an image below which its last axis is not taken for channels."""


class ChannelsFirst:
    """Images (h, w, c) of another source as networks take them: (c, h, w)."""

    def __init__(self, source: Source, said: bool = False) -> None:
        self._source = source
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

    def read(self, rows: IntArray) -> AnyArray:
        return np.ascontiguousarray(np.moveaxis(self._source.read(rows), -1, 1))

    def column(self, number: int) -> str:
        channels, height, width = self.shape
        channel, rest = divmod(number, height * width)
        return self._source.column(rest * channels + channel)


def _channels_first(source: Source, channels: Channels, name: str) -> Source:
    if channels not in ("auto", "first", "last"):
        raise InputError.about("channels", channels, "is unknown; use 'auto', 'first' or 'last'")
    shape = source.shape
    if channels == "last" and len(shape) != 3:
        raise InputError(
            f"{name} has samples of shape {shape}; channels='last' is for images (height, width, channels)"
        )
    last = len(shape) == 3 and shape[-1] in (1, 3, 4) and shape[0] not in (1, 3, 4) and min(shape[:2]) >= FEWEST_PIXELS
    return ChannelsFirst(source, channels == "last") if channels == "last" or (channels == "auto" and last) else source


def as_source(X: Any, name: str = "X", objects: bool = False, channels: Channels = "auto") -> Source:
    """The source behind `X`: numpy array, memory map, sparse matrix, pandas / Polars / Arrow table, torch tensor or
    Dataset; with `objects` also texts, and tables whose columns are not all numbers.

    `name` is what errors call it. Images whose last axis holds 1, 3 or 4 channels have them moved to the front, unless
    `channels` says otherwise; the source's `notes` say so.
    """
    import scipy.sparse

    if objects and not isinstance(X, Source):
        from ally.sources.arrays.objects import as_frame, as_objects

        X = as_objects(X, name) or as_frame(X, name) or X
    source: Source
    if isinstance(X, Source):
        source = X
    elif scipy.sparse.issparse(X):
        source = SparseSource(X, name)
    elif isinstance(X, np.ma.MaskedArray):
        raise InputError(
            f"{name} is a masked array; fill its masked entries first, for instance with {name.rstrip('=')}.filled(...)"
        )
    elif isinstance(X, np.ndarray):
        source = _from_numpy(X, name)
    elif (kind := _table_kind(X)) is not None:
        source = _from_table(X, kind, name)
    elif _is_tensor(X):
        source = _from_numpy(_tensor_to_numpy(X, name), name)
    elif hasattr(X, "__getitem__") and hasattr(X, "__len__") and not isinstance(X, (list, tuple, str, bytes, dict)):
        source = DatasetSource(X)
    elif isinstance(X, (list, tuple)):
        source = _from_numpy(_array_of(X, name), name)
    else:
        raise InputError(
            f"{name} is a {type(X).__name__}; pass an array, a sparse matrix, a table, a tensor or a torch Dataset"
        )
    if len(source) == 0:
        raise InputError(
            f"{name} has 0 sample(s), while a minimum of 1 is required{': the pool is empty' if name == 'X' else ''}"
        )
    return source if source is X else _channels_first(source, channels, name)


def _array_of(X: Sequence[Any], name: str) -> AnyArray:
    try:
        return np.asarray(X)
    except ValueError as error:
        raise InputError(
            f"{name} is a list whose rows differ in length ({error}); give all rows the same length"
        ) from error


def _from_numpy(X: AnyArray, name: str) -> ArraySource:
    if X.dtype == object:
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{name} has dtype object and is not numeric ({error}); encode text and categories first"
            ) from error
    return ArraySource(X, name=name)


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


def _is_tensor(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "torch" and hasattr(X, "detach")


def _tensor_to_numpy(X: Any, name: str = "X") -> AnyArray:
    if str(X.layout) != "torch.strided":
        raise InputError(
            f"{name} is a sparse tensor ({X.layout}); pass {name.rstrip('=')}.to_dense(), or a scipy sparse matrix"
        )
    narrow = X.is_floating_point() and X.dtype.itemsize <= 2
    array: AnyArray = (X.float() if narrow else X).detach().cpu().numpy()
    return array


def _table_kind(X: Any) -> str | None:
    root = type(X).__module__.split(".")[0]
    return root if root in {"pandas", "polars", "pyarrow"} else None


def _from_table(X: Any, kind: str, name: str) -> ArraySource:
    if hasattr(X, "collect"):
        raise InputError(f"{name} is a {kind} {type(X).__name__}; pass {name.rstrip('=')}.collect()")
    if not hasattr(X, "columns"):
        raise InputError(f"{name} is a {kind} {type(X).__name__}; pass a table with one column per feature")
    if kind == "polars":
        names = list(X.columns)
        odd = next((key for key in names if not (X.schema[key].is_numeric() or str(X.schema[key]) == "Boolean")), None)
        if odd is not None:
            raise _not_numeric(odd, X[odd][0] if len(X) else None, X.schema[odd])
        return ArraySource(np.asarray(X.to_numpy(), dtype=np.float64), names, name)
    frame = X if kind == "pandas" else X.to_pandas()
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"column {repeated[0]!r} appears more than once; give every feature its own name")
    for key, dtype in frame.dtypes.items():
        if getattr(dtype, "kind", "O") not in "fiub":
            raise _not_numeric(key, frame[key].iloc[0] if len(frame) else None, dtype)
    return ArraySource(frame.to_numpy(dtype=np.float64, na_value=np.nan), [str(key) for key in frame.columns], name)


def _not_numeric(name: Any, value: Any, dtype: Any) -> InputError:
    return InputError(f"column {name!r} holds {value!r} ({dtype}); features must be numbers: encode it or leave it out")
