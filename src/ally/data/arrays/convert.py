"""Turns a user's ``X`` into a source: arrays, tables, tensors, torch data sets, lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.arrays.memory import (
    FEWEST_PIXELS,
    ArraySource,
    Channels,
    ChannelsFirst,
    DatasetSource,
    SparseSource,
    is_tensor,
    tensor_to_numpy,
)
from ally.data.arrays.objects import as_frame, as_objects
from ally.data.arrays.parts import open_parts
from ally.data.arrays.ray_blocks import is_dataset, open_blocks
from ally.data.base import AdaptedSource, RowReader, Source
from ally.errors import InputError
from ally.types import AnyArray


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
    Dataset, Ray Dataset, or a folder of .npy or Parquet parts; with `objects` also texts, and tables whose columns are
    not all numbers.

    `name` is what errors call it. Images whose last axis holds 1, 3 or 4 channels have them moved to the front, unless
    `channels` says otherwise; the source's `notes` say so.
    """
    import scipy.sparse

    if objects and not isinstance(X, RowReader):
        X = as_objects(X, name) or as_frame(X, name) or X
    source: Source
    if isinstance(X, Source):
        source = X
    elif isinstance(X, RowReader):
        source = AdaptedSource(X)
    elif scipy.sparse.issparse(X):
        source = SparseSource(X, name)
    elif isinstance(X, np.ma.MaskedArray):
        raise InputError(
            f"{name} is a masked array; fill its masked entries first, for instance with {name.rstrip('=')}.filled(...)"
        )
    elif isinstance(X, np.ndarray):
        source = _from_numpy(X, name)
    elif is_dataset(X):
        source = open_blocks(X)
    elif (kind := _table_kind(X)) is not None:
        source = _from_table(X, kind, name)
    elif is_tensor(X):
        source = _from_numpy(tensor_to_numpy(X, name), name)
    elif hasattr(X, "__getitem__") and hasattr(X, "__len__") and not isinstance(X, (list, tuple, str, bytes, dict)):
        source = DatasetSource(X)
    elif isinstance(X, dict):
        raise InputError(f"{name} is a dictionary; if it holds columns, pass pandas.DataFrame({name.rstrip('=')})")
    elif isinstance(X, (list, tuple)):
        source = _from_numpy(_array_of(X, name), name)
    elif isinstance(X, (str, Path)) and Path(X).is_dir():
        source = open_parts(Path(X))
    else:
        raise InputError(
            f"{name} is a {type(X).__name__}; pass an array, a sparse matrix, a table, a tensor or a torch Dataset"
        )
    if len(source) == 0:
        raise InputError(
            f"{name} has 0 sample(s), while a minimum of 1 is required{': the pool is empty' if name == 'X' else ''}"
        )
    return source if isinstance(X, RowReader) else _channels_first(source, channels, name)


def ensure_one_size(pictures: Sequence[Any], name: str) -> None:
    """Refuse pictures (of Pillow) of different sizes in a list."""
    sizes = {(picture.size, picture.mode) for picture in pictures if is_picture(picture)}
    if len(sizes) > 1:
        some = " and ".join(f"{width}×{height} {mode}" for (width, height), mode in sorted(sizes)[:2])
        raise InputError(
            f"{name} holds pictures of different sizes or modes, such as {some}; save them in a folder for "
            "Campaign.create, which brings them to one size, or bring them to one with "
            "picture.convert('RGB').resize((64, 64))"
        )


def is_picture(value: Any) -> bool:
    """Whether it is a picture of Pillow."""
    return type(value).__module__.split(".")[0] == "PIL"


def _array_of(X: Sequence[Any], name: str) -> AnyArray:
    if X and isinstance(X[0], str):
        raise InputError(
            f"{name} holds texts, and numbers are needed here; ally.query and Campaign.create read texts, or pass the "
            "vectors of an encoder"
        )
    ensure_one_size(X, name)
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
