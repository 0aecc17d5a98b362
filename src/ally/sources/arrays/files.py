"""Pools and labels from files: .npy, .npz, .csv and .parquet."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ally.errors import IdError, InputError, LabelError, MissingPart
from ally.sources.export.cells import WRITTEN
from ally.types import AnyArray

KINDS = (".npy", ".npz", ".csv", ".parquet")


def read_pool(path: Path, id_column: str | None = None) -> tuple[Any, AnyArray | None]:
    """Features and ids (None: row numbers). Arrays stay on disk as memory maps; nothing is unpickled.

    A table's ids are its column `id_column`, or ``id`` if there is one. An .npz file holds ``X`` and, optionally,
    ``ids``.
    """
    _ensure_file(path)
    X, ids = _read_pool(path, id_column)
    if X.shape[:1] == (0,):
        raise InputError(f"{path} has no rows; give at least one sample")
    return X, ids


def _read_pool(path: Path, id_column: str | None) -> tuple[Any, AnyArray | None]:
    kind = path.suffix.lower()
    try:
        if kind == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False), None
        if kind == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                if "X" not in arrays:
                    raise InputError(
                        f"{path} holds {', '.join(arrays) or 'nothing'}; save the features as X (and ids as ids)"
                    )
                ids = arrays.get("ids")
                return arrays["X"], ids.astype(str) if ids is not None and ids.dtype.kind == "S" else ids
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} cannot be read as {kind} ({error}); save it again with numpy, without object arrays"
        ) from error
    table = _read_table(path, kind)
    if id_column is None:
        id_column = "id" if "id" in table.columns else None
    elif id_column not in table.columns:
        raise IdError(f"{path} has no column {id_column!r}; its columns are {', '.join(map(str, table.columns[:20]))}")
    if id_column is None:
        return table, None
    ids = _read_table(path, kind, text=True)[id_column].tolist()
    return table.drop(columns=id_column), np.asarray(_numbers(ids, (int,)))


def read_labels(path: Path) -> dict[Any, Any]:
    """Labels by id from a table with columns ``id`` and ``label``; rows with an empty label are left out.

    Words such as NA or None are labels like any other. A column of numbers is read as numbers if every entry is written
    that way.
    """
    _ensure_file(path)
    kind = path.suffix.lower()
    table = _read_table(path, kind, text=True)
    missing = [name for name in ("id", "label") if name not in table.columns]
    if missing:
        raise LabelError(
            f"{path} has no column {missing[0]!r}; it needs the columns id and label, and has "
            f"{', '.join(map(str, table.columns))}"
        )
    table = table[table["label"].notna() & (table["label"] != "")]
    ids, labels = _numbers(table["id"].tolist(), (int,)), _numbers(table["label"].tolist())
    found: dict[Any, Any] = {}
    for id, label in zip(ids, labels, strict=True):
        if id in found:
            raise IdError(f"{path} labels id {id!r} more than once; keep one line per id")
        found[id] = label
    return found


def _numbers(values: list[Any], kinds: tuple[type, ...] = (int, float)) -> list[Any]:
    """Integers or floats, if every entry is written as one (no leading zeros, no words); otherwise as they are."""
    for kind in kinds:
        if values and all(isinstance(value, str) and WRITTEN[kind].fullmatch(value) for value in values):
            return [kind(value) for value in values]
    return values


def _ensure_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(
            f"{path} is {'a folder' if path.is_dir() else 'missing'}; give the path of a {', '.join(KINDS)} file"
        )


def _read_table(path: Path, kind: str, text: bool = False) -> pd.DataFrame:
    """A table; with `text` a CSV's entries are left as they are written."""
    try:
        if kind == ".csv":
            return pd.read_csv(path, dtype=str, keep_default_na=False) if text else pd.read_csv(path)
        if kind == ".parquet":
            return pd.read_parquet(path)
    except ImportError as error:
        raise MissingPart("reading .parquet needs pyarrow: pip install 'ally-learn[parquet]'") from error
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read as {kind} ({error}); check the file") from error
    raise InputError(f"{path} has the ending {kind or '(none)'!r}; use one of {', '.join(KINDS)}")
