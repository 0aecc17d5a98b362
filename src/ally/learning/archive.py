"""What an archive of skops holds, as plain values: nothing in it is imported, called or built.

skops itself decides by the archive which of its loaders run and what these import. Here only those in `_READERS` are
known, an object stays a `StoredObject`, and every size is compared with what is there before memory is taken for it.
"""

from __future__ import annotations

import io
import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ally.errors import DataError
from ally.types import AnyArray

SCHEMA = "schema.json"
LONGEST_PLAN, MOST_NODES, MOST_VALUES = 48 * 2**20, 600_000, 4_000_000
"""Of a plan: bytes, lists and dicts, and what these hold. An empty list takes 20 times its two characters."""
ALWAYS_UNPACKED, MOST_GROWTH = 64 * 2**20, 20
"""An archive may unpack to so many bytes, and beyond to so many times its own size."""
MOST_MEMBERS = 100_000
DEEPEST = 60
PROTOCOLS = (0, 1, 2)
DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError, KeyError,
    TypeError, AttributeError, IndexError, SyntaxError, MemoryError, OverflowError, tokenize.TokenError,
)  # fmt: skip
"""What reading an archive may raise if it lies."""

TYPES = {
    f"numpy.{name}": getattr(np, name) for name in ("float32", "float64", "int32", "int64", "uint8", "bool", "str_")
} | {f"builtins.{kind.__name__}": kind for kind in (str, int, float, bool)}
STREAMS = ("RandomStateNode", "RandomGeneratorNode")


@dataclass(frozen=True)
class StoredObject:
    """An object: the import path of its class, its state, and for a tree what it is made from."""

    path: str
    state: Any = None
    made_from: tuple[Any, ...] = ()


class Stream:
    """Stands for a random generator: a foreign one is never taken over."""


def read_archive(data: bytes) -> Any:
    """The value in an archive. Raises `DataError` if it lies, is too large, or holds what is never read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_directory(archive.infolist(), len(data))
            plan = _read_plan(archive.read(SCHEMA))
            return _ArchiveReader(archive, find_most_unpacked(len(data))).read(plan, 0)
    except DAMAGED as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error!s:.200}"
        raise DataError(f"the estimator in the file cannot be read ({reason}); train it again") from error


def find_most_unpacked(size: int) -> int:
    """Bytes that an archive of this size may unpack to."""
    return ALWAYS_UNPACKED + MOST_GROWTH * size


def _check_directory(members: list[zipfile.ZipInfo], size: int) -> None:
    names = {one.filename for one in members}
    if len(members) > MOST_MEMBERS or len(names) < len(members):
        raise ValueError(f"{len(members)} members of {len(names)} names")
    if any(one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for one in members):
        raise ValueError("it is compressed in another way than ally's")
    unpacked = sum(one.file_size for one in members)
    if unpacked > find_most_unpacked(size):
        raise ValueError(f"its {size} bytes would unpack to {unpacked}")
    longest = next((one.file_size for one in members if one.filename == SCHEMA), 0)
    if longest > LONGEST_PLAN:
        raise ValueError(f"its plan has {longest} bytes and {LONGEST_PLAN} is the most")


def _read_plan(text: bytes) -> Any:
    nodes, values = text.count(b"{") + text.count(b"["), text.count(b",")
    if nodes > MOST_NODES or values > MOST_VALUES or not text.isascii():
        raise ValueError(f"its plan has {nodes} nodes and {values} values")
    plan = json.loads(text)
    if plan.get("protocol") not in PROTOCOLS or isinstance(plan["protocol"], bool):
        raise ValueError(f"protocol {plan.get('protocol')!r:.60}")
    return plan


class _ArchiveReader:
    def __init__(self, archive: zipfile.ZipFile, most: int) -> None:
        self._archive, self._left = archive, most
        self._arrays: dict[str, AnyArray] = {}

    def read(self, node: Mapping[str, Any], depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError("it is nested too deeply")
        loader, path = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        if loader in STREAMS:
            return Stream()
        reader = _READERS.get(loader)
        if reader is None:
            raise ValueError(f"it holds {path!r:.200} as a {loader!r:.60}, which is never read from a file")
        return reader(self, node, path, depth + 1)

    def read_array(self, name: str) -> AnyArray:
        """Read-only: a plan may name one many times. Whoever uses it may copy it each time, so each time counts."""
        if name not in self._arrays:
            self._arrays[name] = parse_array(self._archive.read(name))
        values = self._arrays[name]
        self._left -= values.nbytes
        if self._left < 0:
            raise ValueError("it names its arrays again and again")
        return values


def _read_json(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> Any:
    value = json.loads(node["content"])
    if isinstance(value, (list, dict)):
        raise ValueError("a plain value is a list or a dict")
    return value


def _read_dict(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> dict[Any, Any]:
    _expect(path, "builtins.dict", "collections.OrderedDict")
    kinds = reading.read(node["key_types"], depth)
    named = node["content"].items()
    return {kind(key): reading.read(value, depth) for kind, (key, value) in zip(kinds, named, strict=True)}


def _read_list(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> list[Any]:
    _expect(path, "builtins.list")
    return [reading.read(value, depth) for value in node["content"]]


def _read_tuple(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> tuple[Any, ...]:
    _expect(path, "builtins.tuple")
    return tuple(reading.read(value, depth) for value in node["content"])


def _read_type(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> Any:
    _expect(path, *TYPES)
    return TYPES[path]


def _read_array(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> Any:
    if node["type"] == "json":
        _expect(path, "numpy.ndarray")
        shape = reading.read(node["shape"], depth)
        return _fill_array([reading.read(value, depth) for value in node["content"]], shape)
    values = reading.read_array(node["file"])
    if path == "numpy.ndarray":
        return values
    if values.shape or not path.startswith("numpy."):
        raise ValueError(f"it holds {path!r:.200} of shape {values.shape}")
    return values[()]


def _read_object(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> StoredObject:
    return StoredObject(path, reading.read(node["content"], depth) if node.get("content") is not None else None)


def _read_tree(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> StoredObject:
    return StoredObject(path, reading.read(node["content"], depth), reading.read(node["__reduce__"]["args"], depth))


def _read_loss(reading: _ArchiveReader, node: Mapping[str, Any], path: str, depth: int) -> StoredObject:
    """Its name only: the settings of an estimator say which loss it has."""
    return StoredObject(path)


_READERS: Mapping[str, Callable[[_ArchiveReader, Mapping[str, Any], str, int], Any]] = {
    "JsonNode": _read_json,
    "DictNode": _read_dict,
    "ListNode": _read_list,
    "TupleNode": _read_tuple,
    "TypeNode": _read_type,
    "NdArrayNode": _read_array,
    "ObjectNode": _read_object,
    "TreeNode": _read_tree,
    "LossNode": _read_loss,
}


def _expect(path: str, *allowed: str) -> None:
    if path not in allowed:
        raise ValueError(f"it holds {path!r:.200} where {allowed[0]} belongs")


def _fill_array(values: list[Any], shape: Any) -> AnyArray:
    """An array of objects; skops keeps it as nested lists."""
    flat = values
    for _ in shape[1:]:
        flat = [value for row in flat for value in row]
    if math.prod(shape) != len(flat) or len(values) != shape[0]:
        raise ValueError(f"an array of shape {shape!r:.60} has {len(flat)} values")
    filled = np.empty(len(flat), dtype=object)
    for place, value in enumerate(flat):
        filled[place] = value
    return filled.reshape(shape)


def parse_array(data: bytes) -> AnyArray:
    """An array as numpy writes it, if its header speaks of exactly the bytes behind it."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, by_columns, dtype = reader(stream)
    content = data[stream.tell() :]
    if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"an array of shape {shape!r:.60} and type {dtype!s:.60} has {len(content)} bytes")
    if not dtype.itemsize:
        raise ValueError(f"an array of type {dtype!s:.60} has no bytes")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if by_columns else "C")
