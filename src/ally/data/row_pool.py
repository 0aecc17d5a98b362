"""Data by row number: what `ally.query`, `Loop` and ``ally query`` read, opened as a campaign opens it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from ally.data.arrays.convert import as_source
from ally.data.arrays.gaps import FilledSource
from ally.data.arrays.memory import ArraySource, Channels
from ally.data.arrays.samples import NUMBERED, ArraySamples
from ally.data.base import RowReader, Source, blocks
from ally.data.containers import unpack
from ally.data.encoders.base import Function
from ally.data.encoders.choosing import encode_samples
from ally.data.encoders.samples import EncodedSamples
from ally.data.given_labels import ensure_single, plain_labels
from ally.data.ids import read_whole
from ally.data.opening import ReadOptions, open_source
from ally.data.samples import Samples, notes_beside_columns
from ally.data.tables.frames import is_frame
from ally.data.tables.layout import HASHED, LABEL_NAMES, NO_LABEL
from ally.data.tables.samples import RowSamples
from ally.errors import IdError, InputError
from ally.types import NULL, Progress

HELD = 2**28
"""Features of a table that are held in memory, in numbers; more are read from the file again and again."""
OTHERWISE = "label= for another, label='none' for none"


@dataclass(frozen=True, eq=False)
class RowPool:
    """Samples by row number."""

    source: Source
    ids: Any = None
    """One per row, as they came; None: row numbers."""
    labels: Sequence[Any] | None = field(default=None, repr=False)
    """One per row, None where there is none, if the data held labels."""
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    """Of the features of a table."""
    open_other: Callable[[Any, str], Source] = field(default=as_source, repr=False)
    """Other samples as this pool's are read; the second argument is what errors call them."""


def open_pool(
    X: Any,
    *,
    ids: Any = None,
    labelled: bool = False,
    objects: bool = False,
    fills: bool = True,
    encoder: Any = "auto",
    channels: Channels = "auto",
    missing_label: Any = NULL,
    vectors: Any = None,
    progress: Progress | None = None,
    **options: Unpack[ReadOptions],
) -> RowPool:
    """What a query reads, from anything that `open_source` takes.

    Args:
        ids: instead of those in the data.
        labelled: whether the labels are elsewhere, so that none are looked for in the data.
        objects: whether the learner takes samples in the form they came in: frames, texts, and arrays with NaN.
        fills: whether missing numbers of an array are filled in, as those of a table are.
        encoder: a pretrained encoder of texts or photos, see `encode_samples`; also a function of a list of them.
        progress: called while an encoder reads.
        vectors: what is learned from instead, the `embeddings` of `open_source`.
    """
    if isinstance(X, RowPool):
        return X
    if isinstance(X, RowReader):
        return RowPool(as_source(X), ids, notes=as_source(X).notes)
    check_options(options)
    plain = not isinstance(X, (str, Path)) and set(options) <= {"label", "columns", "collate"}
    if objects and plain and encoder in (None, "auto", "none"):
        return _with_ids(_open_objects(X, labelled, channels, options), ids)
    mark = missing_label if isinstance(missing_label, (str, int)) else None
    of_file, name = ids if isinstance(ids, (str, Path)) else None, str(X) if isinstance(X, (str, Path)) else "X"
    samples = open_source(
        X,
        ids=of_file,
        channels=channels,
        missing_label=mark,
        embeddings=vectors,
        labelled=labelled,
        name=name,
        **options,
    )
    pool = None
    if isinstance(samples, ArraySamples):
        pool = _open_array(samples, channels, encoder, fills)
    elif isinstance(samples, RowSamples):
        pool = _open_numbers(X, samples)
    pool = _open_samples(X, samples, encoder, vectors, labelled, progress, options) if pool is None else pool
    return _with_ids(pool, ids if of_file is None else None)


def check_options(options: Mapping[str, Any]) -> None:
    odd = next((name for name in options if name not in ReadOptions.__annotations__), None)
    if odd is not None:
        raise InputError(f"{odd}= is not known; how data are read is said by {', '.join(ReadOptions.__annotations__)}")


def _with_ids(pool: RowPool, ids: Any) -> RowPool:
    """The pool with `ids`, if they are given; the index of a frame must otherwise name each row once."""
    if ids is None and hasattr(pool.ids, "duplicated"):
        repeated = pool.ids[pool.ids.duplicated()].tolist()
        if repeated:
            raise IdError(
                f"the index of X repeats {repeated[0]!r}, so it cannot be the ids; pass ids=, or "
                "X.reset_index(drop=True) if it only numbers the rows"
            )
        return replace(pool, ids=pool.ids.to_numpy())
    return pool if ids is None else replace(pool, ids=ids)


def _open_array(samples: ArraySamples, channels: Channels, encoder: Any, fills: bool) -> RowPool:
    encode_samples(samples, encoder, None, None, None, None)  # refuses one that is named: these are numbers
    filled = samples.filled if fills else samples.source

    def open_other(X: Any, name: str) -> Source:
        source = as_source(X, name, channels=channels)
        return FilledSource(source, filled.gaps) if isinstance(filled, FilledSource) else source

    notes = (*samples.decided, *filled.notes)
    ids = None if samples.ids is None else read_whole(samples.ids)
    return RowPool(filled, ids, samples.labels, notes, open_other=open_other)


def _open_objects(X: Any, labelled: bool, channels: Channels, options: ReadOptions) -> RowPool:
    """Frames, texts and arrays as they are, but for a column of labels."""
    import pandas as pd

    label, columns = options.get("label"), options.get("columns")
    container = unpack(X, label=label, columns=columns, collate=options.get("collate"), labelled=labelled)
    data, labels, notes = container.data, container.labels, container.notes
    label, columns = container.options.get("label", label), container.options.get("columns", columns)
    if isinstance(data, list):
        data = pd.DataFrame(data)
    if is_frame(data) and not hasattr(data, "collect"):
        data = data if isinstance(data, pd.DataFrame) else data.to_pandas()
        data = data if columns is None else data[[name for name in data.columns if name in {*columns, label}]]
        names = [name for name in data.columns if name == label or str(name).casefold() in LABEL_NAMES]
        if len(names) == 1 and not labelled and label != NO_LABEL:
            labels, notes = data[names[0]].tolist(), (f"the column {names[0]!r} holds the labels ({OTHERWISE})",)
            data = data.drop(columns=names)
        if list(data.columns) == ["text"] and not isinstance(X, pd.DataFrame):
            data = data["text"]
    source = as_source(data, objects=True, channels=channels)

    def open_other(other: Any, name: str) -> Source:
        return as_source(other, name, objects=True, channels=channels)

    return RowPool(source, _find_index(X), labels, (*notes, *source.notes), open_other=open_other)


def _open_numbers(X: Any, samples: RowSamples) -> RowPool | None:
    """A pandas or Polars frame of numbers without gaps, read at once; None for anything else."""
    layout = samples.layout
    names = list(layout.learned)
    if not is_frame(X) or "category" in layout.learned.values():
        return None
    frame = X.to_pandas() if type(X).__module__.startswith("pyarrow") else X
    columns = dict(zip(map(str, frame.columns), frame.columns, strict=True))
    if not names or any(name not in columns for name in names):
        return None
    values = [frame[columns[name]].to_numpy() for name in names]
    if any(column.dtype.kind not in "iuf" for column in values):
        return None
    X_numbers = np.stack([np.asarray(column, np.float64) for column in values], axis=1)
    if np.isnan(X_numbers).any() and not np.isinf(X_numbers).any():
        return None

    def open_other(other: Any, name: str) -> Source:
        named = is_frame(other) and all(columns[name] in other.columns for name in names)
        return as_source(other[[columns[name] for name in names]] if named else other, name)

    ids = frame[columns[layout.id]].to_numpy() if layout.id in columns else _find_index(X)
    labels = None if layout.label is None else plain_labels(frame[columns[layout.label]].to_list())
    notes = tuple(note for note in samples.notes if not note.startswith(HASHED))
    return RowPool(ArraySource(X_numbers, names), ids, labels, notes, tuple(names), open_other)


def _open_samples(
    X: Any,
    samples: Samples,
    encoder: Any,
    vectors: Any,
    labelled: bool,
    progress: Progress | None,
    options: ReadOptions,
) -> RowPool:
    """Samples by id, in the order of a scan."""
    if labelled and isinstance(samples, RowSamples):
        samples.learn()
    if callable(encoder) and not hasattr(encoder, "identity"):
        encoder = Function(encoder, "of this query", samples.kind.encoder or "text")
    samples = encode_samples(samples, encoder, None, vectors, None, None)
    scanned = list(samples.scan())
    kept = samples.fingerprint(learned=False)
    layout, of_file = kept.get("layout"), isinstance(X, (str, Path))
    named = not kept.get("numbered", False) if layout is None else layout["id"] is not None
    bad = [one for one in samples.problems if one.kind == "unreadable" or (one.kind == "duplicate" and named)]
    if bad and (layout is not None or not of_file):
        # Row numbers would be those of other rows, and an id that is there twice names no sample.
        place = X if of_file else "X"
        raise IdError(f"{place}: {bad[0].id}: {bad[0].reason}; correct {'the file' if of_file else 'it'}")
    names = [sample.id for sample in scanned]
    labels = [sample.label for sample in scanned]
    ensure_single(labels, X if of_file else "X")
    if isinstance(samples, EncodedSamples):
        samples.prepare(names, progress)
    features = samples.features(names)
    ids = read_whole(names) if named and (of_file or _find_index(X) is None) else _find_index(X)
    told = notes_beside_columns(samples)
    if ids is None:
        told = ["ids are row numbers, from 0 on", *(note for note in told if not note.startswith((HASHED, NUMBERED)))]
    told += [f"column {name!r}: {how}" for name, how in samples.columns().items()]
    odd = [f"{one.id}: {one.reason}" for one in samples.problems if one.kind == "value"]
    told += [f"{len(odd)} values are odd, such as {odd[0]}"] if odd else []
    told += [f"{len(bad)} images are left out, such as {bad[0].id}: {bad[0].reason}"] if bad else []
    return RowPool(
        _hold(features),
        ids,
        plain_labels(labels) if any(label is not None for label in labels) else None,
        tuple(told),
        features.names or None,
        _other_opener(samples, options),
    )


def _other_opener(samples: Samples, options: ReadOptions) -> Callable[[Any, str], Source]:
    reading: Any = {
        name: value for name, value in options.items() if name in ("folder", "encoding", "header", "collate")
    }

    def open_other(other: Any, name: str) -> Source:
        again = open_source(other, known=samples.fingerprint(), other=True, **reading)
        again = samples.see(again) if isinstance(samples, EncodedSamples) else again
        ids = [sample.id for sample in again.scan()]
        if again.problems.counts["unreadable"]:
            raise InputError(f"{name} holds a sample that cannot be read: {again.problems.first}; correct it")
        return _hold(again.features(ids))

    return open_other


def _hold(features: Source) -> Source:
    """The features in memory, unless they are sparse, the vectors of an encoder, or very many."""
    if features.sparse or features.words is not None or len(features) * math.prod(features.shape) > HELD:
        return features
    values = np.concatenate([features.read(np.arange(part.start, part.stop)) for part in blocks(len(features))])
    return ArraySource(values, features.names or None, vectors=features.vectors)


def _find_index(X: Any) -> Any:
    """The index of a pandas frame or series, if it says more than the row."""
    if type(X).__module__.split(".")[0] != "pandas" or X.index.nlevels > 1:
        return None
    return None if X.index.equals(type(X.index)(range(len(X)))) else X.index
