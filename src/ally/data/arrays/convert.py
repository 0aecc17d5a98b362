"""Turns arrays, tables of numbers, tensors, data sets and folders of parts into a source."""

from __future__ import annotations

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
from ally.data.containers import ItemView, PictureList, unpack
from ally.data.tables.frames import is_frame
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
    data set, Ray Dataset, or a folder of .npy or Parquet parts; with `objects` also texts, and tables whose columns are
    not all numbers.

    `name` is what errors call it. Images whose last axis holds 1, 3 or 4 channels have them moved to the front, unless
    `channels` says otherwise; the source's `notes` say so.
    """
    import scipy.sparse

    if isinstance(X, RowReader):
        return _ensure_some(X if isinstance(X, Source) else AdaptedSource(X), name)
    X = (as_objects(X, name) or as_frame(X, name) or X) if objects else X
    X = X if isinstance(X, Source) else unpack(X, labelled=True, name=name).data
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
    elif is_dataset(X):
        source = open_blocks(X)
    elif is_frame(X):
        source = _from_table(X, name)
    elif is_tensor(X):
        source = _from_numpy(tensor_to_numpy(X, name), name)
    elif isinstance(X, ItemView) and not isinstance(X, PictureList):
        source = DatasetSource(X)
    elif isinstance(X, (str, Path)) and Path(X).is_dir():
        source = open_parts(Path(X))
    elif isinstance(X, (list, PictureList)) and len(X):
        held = "pictures" if isinstance(X, PictureList) else "texts" if "text" in X[0] else "dictionaries"
        raise InputError(
            f"{name} holds {held}, and numbers are needed here; ally.query, Loop and Campaign.create read them, or "
            "pass the vectors of an encoder"
        )
    else:
        raise InputError(
            f"{name} is a {type(X).__name__}; pass an array, a sparse matrix, a table, a tensor or a torch Dataset"
        )
    return _channels_first(_ensure_some(source, name), channels, name)


def _ensure_some(source: Source, name: str) -> Source:
    if not len(source):
        raise InputError(
            f"{name} has 0 sample(s), while a minimum of 1 is required{': the pool is empty' if name == 'X' else ''}"
        )
    return source


def _from_numpy(X: AnyArray, name: str) -> ArraySource:
    if X.dtype == object:
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{name} has dtype object and is not numeric ({error}); encode text and categories first"
            ) from error
    return ArraySource(X, name=name)


def _from_table(X: Any, name: str) -> ArraySource:
    kind = type(X).__module__.split(".")[0]
    if hasattr(X, "collect"):
        raise InputError(f"{name} is a {kind} {type(X).__name__}; pass {name.rstrip('=')}.collect()")
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
