"""Python batches of CIFAR-10, which are pickles, read without running any code they name.

A pickle may call any importable function. Here it only finds the stand-ins below, which record their arguments. No
other code, numpy's included, runs on the file's content; the array is built from the bytes afterwards.
"""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from ally.errors import DataError
from ally.types import AnyArray


class _Record:
    """Stands in for ndarray and dtype: it records its arguments and state."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, tuple) else ()


def _record(*arguments: Any) -> _Record:
    return _Record(*arguments)


def _encode(text: Any, encoding: Any = "") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise DataError(f"it encodes {text!r} as {encoding!r}")
    return text.encode("latin-1")


ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _record,
    ("numpy._core.multiarray", "_reconstruct"): _record,
    ("numpy", "ndarray"): _Record,
    ("numpy", "dtype"): _Record,
    ("_codecs", "encode"): _encode,
}


class _Inert(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise DataError(f"it names {module}.{name}, which a batch of images never needs")
        return ALLOWED[module, name]


def read_python_batch(path: Path) -> tuple[AnyArray, AnyArray]:
    """Pixels (n, 3072) uint8 and labels (n,) of a batch such as ``cifar-10-batches-py/data_batch_1``."""
    try:
        with path.open("rb") as stream:
            content = _Inert(stream, encoding="bytes").load()
    except OSError:
        raise
    except Exception as error:  # a hostile or broken pickle may raise anything
        raise DataError(f"{path} is not a CIFAR-10 batch ({error}); nothing in it was run; fetch it again") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} holds a {type(content).__name__}, not a CIFAR-10 batch; fetch it again")
    fields = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in content.items()}
    labels = fields.get("labels")
    if not isinstance(labels, list) or not all(type(label) is int and abs(label) < 2**31 for label in labels):
        raise DataError(f"{path} has no list of labels; fetch it again")
    return _array(fields.get("data"), path), np.asarray(labels, dtype=np.int64)


def _array(value: Any, path: Path) -> AnyArray:
    """The uint8 array that a record of ndarray describes: (version, shape, dtype, column-major, bytes)."""
    match value:
        case _Record(state=(int(), tuple() as shape, _Record(arguments=(b"u1" | "u1", *_)), columns, bytes() as data)):
            if all(isinstance(size, int) and size >= 0 for size in shape) and math.prod(shape) == len(data):
                return np.frombuffer(data, np.uint8).reshape(shape, order="F" if columns else "C")
    raise DataError(f"{path} has no array of bytes called data; fetch it again")
