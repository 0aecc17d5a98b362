"""Pools and labels from files: arrays and tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ally.data.arrays.memory import ArraySource
from ally.data.arrays.parts import is_parts, open_parts
from ally.data.arrays.samples import read_array_file, read_ids
from ally.data.base import blocks
from ally.data.export.cells import WRITTEN
from ally.data.given_labels import ensure_single, unmarked
from ally.data.identity import is_missing
from ally.data.opening import open_source
from ally.data.samples import Samples, notes_beside_columns
from ally.data.tables import BadRow, open_rows
from ally.data.tables.layout import HASHED, NO_LABEL
from ally.data.tables.samples import RowSamples
from ally.errors import IdError, InputError, LabelError
from ally.types import AnyArray

KINDS = (".npy", ".npz", ".csv", ".tsv", ".xlsx", ".parquet", ".jsonl")
HELD = 2**28
"""Features of a table that are held in memory, in numbers; more are read from the file again and again."""


class PoolFile(NamedTuple):
    """What a file says: features, ids (None: row numbers), labels by id where it has some, notes, and the names of the
    features of a table."""

    X: Any
    ids: AnyArray | None
    labels: dict[Any, Any]
    notes: tuple[str, ...]
    names: tuple[str, ...] | None


def read_pool(
    path: Path,
    id_column: str | None = None,
    *,
    labelled: bool = False,
    through: Callable[[Samples], Samples] | None = None,
    **options: Any,
) -> PoolFile:
    """Arrays stay on disk as memory maps; nothing is unpickled. An .npz file holds ``X`` and, optionally, ``ids``.

    A table or a folder of images is read as `ally.data.open_source` reads it, with its `options`: ids, labels, texts
    and categories included. `labelled`: the labels come from elsewhere, so that no column is suspected to hold them.
    `through` gives the samples as an encoder sees them.
    """
    folder = path.is_dir()
    if not folder:
        _ensure_file(path)
    if not (is_parts(path) if folder else path.suffix.lower() in (".npy", ".npz")):
        return _from_samples(path, id_column, labelled, through, options)
    if through is not None:
        raise InputError(f"an encoder reads texts or images, and {path} holds numbers; leave the encoder out")
    if folder:
        return PoolFile(open_parts(path), None, {}, (), None)
    for name, value in {"id_column": id_column, **options}.items():
        if value is not None and name not in ("label", "missing_label", "ids"):
            raise InputError.about(name, value, "does not apply to an array; leave it out")
    X, texts, labels = read_array_file(path)
    texts = texts if options.get("ids") is None else read_ids(options["ids"])
    if X.shape[:1] == (0,):
        raise InputError(f"{path} has no rows; give at least one sample")
    ids = None if texts is None else np.asarray(_numbers(texts, (int,)))
    given = [] if labels is None or options.get("label") == NO_LABEL else unmarked(labels, options.get("missing_label"))
    keys = list(range(len(given))) if ids is None else ids.tolist()
    known = {key: label for key, label in zip(keys, given, strict=False) if label is not None}
    return PoolFile(X, ids, known, (f"the array y of {path} holds the labels",) if known else (), None)


def _from_samples(
    path: Path,
    id_column: str | None,
    labelled: bool,
    through: Callable[[Samples], Samples] | None,
    options: dict[str, Any],
) -> PoolFile:
    samples = open_source(path, id_column=id_column, **options)
    if labelled and isinstance(samples, RowSamples):
        samples.learn()
    samples = samples if through is None else through(samples)
    found = list(samples.scan())
    layout = samples.fingerprint(learned=False).get("layout")
    named = layout is None or layout["id"] is not None
    bad = [one for one in samples.problems if one.kind == "unreadable" or (one.kind == "duplicate" and named)]
    if bad and layout is not None:
        # Row numbers would be those of other rows, and an id that is there twice names no sample.
        raise IdError(f"{path}: {bad[0].id}: {bad[0].reason}; correct the file")
    names = [sample.id for sample in found]
    ids = np.asarray(_numbers(names, (int,))) if named else None
    keys = list(range(len(found))) if ids is None else ids.tolist()
    given = {key: sample.label for key, sample in zip(keys, found, strict=True) if sample.label is not None}
    ensure_single(given.values(), path)
    source = samples.features(names)
    X = held_features(source)
    left_out = [f"{len(bad)} images are left out, such as {bad[0].id}: {bad[0].reason}"] if bad else []
    odd = [f"{one.id}: {one.reason}" for one in samples.problems if one.kind == "value"]
    more = [f"{len(odd)} values are odd, such as {odd[0]}"] if odd else []
    columns = [f"column {name!r}: {how}" for name, how in samples.columns().items()]
    told = notes_beside_columns(samples)
    if ids is None:
        told = ["ids are row numbers, from 0 on", *(note for note in told if not note.startswith(HASHED))]
    return PoolFile(X, ids, given, (*told, *columns, *more, *left_out), source.names or None)


def held_features(source: Any) -> Any:
    """The features in memory, unless they are sparse or very many."""
    if source.sparse or len(source) * math.prod(source.shape) > HELD:
        return source
    values = np.concatenate([source.read(np.arange(part.start, part.stop)) for part in blocks(len(source))])
    return ArraySource(values, vectors=True) if source.vectors else values


def read_labels(path: Path, id_column: str | None = None, label_column: str | None = None) -> dict[Any, Any]:
    """Labels by id from a table with columns ``id`` and ``label``, or those named; rows with an empty label are left
    out.

    Words such as NA or None are labels like any other. A column of numbers is read as numbers if every entry is written
    that way.
    """
    _ensure_file(path)
    rows = open_rows(path)
    named = {"id": id_column or "id", "label": label_column or "label"}
    lost = next((name for name in named.values() if name not in rows.columns), None)
    if lost is not None:
        raise LabelError(
            f"{path} has no column {lost!r}; it needs the columns id and label, and has {', '.join(rows.columns[:20])}"
        )
    ids: list[Any] = []
    labels: list[Any] = []
    for row in rows.scan():
        if isinstance(row, BadRow):
            raise InputError(f"{row.name} of {path}: {row.reason}; correct the file")
        label = row.values.get(named["label"])
        if not is_missing(label):
            ids.append(row.values.get(named["id"]))
            labels.append(label)
    found: dict[Any, Any] = {}
    for id, label in zip(_numbers(ids, (int,)), _numbers(labels), strict=True):
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
