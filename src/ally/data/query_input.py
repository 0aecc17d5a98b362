"""Query inputs that are not numeric arrays: texts, dictionaries, frames with texts or missing values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ally.data.arrays.files import held_features
from ally.data.opening import open_source
from ally.data.samples import notes_beside_columns
from ally.data.tables.frames import FrameRows, is_frame
from ally.data.tables.layout import HASHED, LABEL_NAMES
from ally.data.tables.samples import RowSamples
from ally.types import AnyArray


class QueryInput(NamedTuple):
    """Features that `as_source` takes, the ids that they came with (None: row numbers), and what was decided."""

    X: Any
    ids: AnyArray | None = None
    notes: tuple[str, ...] = ()
    labels: list[Any] | None = None
    """Those of a column that is named like the answer; None if there is no such column."""


def as_features(X: Any, read: bool = True, *, labelled: bool = False) -> QueryInput:
    """Texts become word weights, and columns of a table become numbers and categories, as in a campaign; gaps are
    filled and marked. The index of a pandas frame is its ids, unless it only numbers the rows. A column named like the
    answer holds labels and is not a feature. Unless the labels are given elsewhere (`labelled`), a column that may be
    the answer raises. Other numbers stay as they are. Without `read` everything does, because a user's own pipeline may
    want the texts themselves."""
    if is_frame(X) and hasattr(X, "collect"):
        return QueryInput(X)
    if is_frame(X) and (not read or (_plain(X) and not _answers(X))):
        return QueryInput(X, _index(X))
    if not read:
        return QueryInput(X)
    texts = _is_series(X) and len(X) > 0 and isinstance(next(iter(X)), str)
    listed = isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (str, Mapping))
    if not (is_frame(X) or texts or listed) or len(X) == 0:
        return QueryInput(X)
    samples = open_source(X)
    if labelled and isinstance(samples, RowSamples):
        samples.suspect_no_labels()
    scanned = list(samples.scan())
    found = [sample.id for sample in scanned]
    if len(found) != len(X):
        # A row that cannot be read would move all others to other numbers; the error names it.
        return QueryInput(X)
    if labelled and isinstance(samples, RowSamples):
        samples.learn()
    layout = samples.fingerprint()["layout"]
    ids = _index(X) if is_frame(X) or texts else None
    if ids is None and layout["id"] is not None:
        ids = np.asarray(found)
    columns = [f"column {name!r}: {how}" for name, how in samples.columns().items()]
    labels = None if layout["label"] is None else [sample.label for sample in scanned]
    told = [note for note in notes_beside_columns(samples) if ids is not None or not note.startswith(HASHED)]
    return QueryInput(held_features(samples.features(found)), ids, (*told, *columns), labels)


def holds_texts(X: Any) -> bool:
    """Whether samples are texts: a list, an array or a series of them."""
    if type(X).__module__.partition(".")[0] in ("polars", "pyarrow") or _is_series(X) or isinstance(X, np.ndarray):
        return getattr(X, "ndim", 1) == 1 and not is_frame(X) and len(X) > 0 and isinstance(next(iter(X)), str)
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], str)


def _answers(frame: Any) -> bool:
    """Whether a column is named like the answer."""
    return any(str(name).strip().casefold() in LABEL_NAMES for name in frame.columns)


def _is_series(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "pandas" and hasattr(X, "to_frame") and not hasattr(X, "columns")


def _plain(frame: Any) -> bool:
    """Whether all columns are numeric without missing values."""
    if type(frame).__module__.split(".")[0] != "pandas":
        schema: Any = getattr(frame, "schema", {})
        kinds = [str(kind).lower() for kind in (schema.types if hasattr(schema, "types") else dict(schema).values())]
        return not any("str" in kind or "utf" in kind or "categor" in kind for kind in kinds)
    if any(getattr(kind, "kind", "O") not in "fiub" for kind in frame.dtypes):
        return any(getattr(kind, "kind", "O") in "mMc" for kind in frame.dtypes)
    return not frame.isna().to_numpy().any()


def _index(X: Any) -> AnyArray | None:
    """The index of a pandas frame or series as ids, if it says more than the row."""
    frame = X.to_frame("text") if _is_series(X) else X
    if type(frame).__module__.split(".")[0] != "pandas" or FrameRows(frame).index is None:
        return None
    return np.asarray(frame.index) if frame.index.is_unique else None
