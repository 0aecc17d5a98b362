"""Labels that are in memory: pairs, a dictionary, a series or a frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ally.data.export.answers import Answer
from ally.data.identity import is_missing
from ally.data.ids import as_text
from ally.data.tables.frames import is_frame
from ally.errors import InputError


def read_answers_in_memory(given: Any, *, id_column: str | None = None, label: str | None = None) -> list[Answer]:
    """One answer for each label that is there. The ids of a series are its index, and so are those of a pandas frame
    without a column of ids; whole numbers are written as such."""
    if is_frame(given):
        pairs = _pair_columns(given, id_column, label)
    elif id_column is not None or label is not None:
        raise InputError(
            f"id_column= and label= name columns of a table; the labels are {_describe(given)}: leave them out"
        )
    elif isinstance(given, Mapping) or (hasattr(given, "index") and hasattr(given, "items")):
        pairs = given.items()
    elif isinstance(given, (list, tuple)):
        odd = next((one for one in given if not isinstance(one, (list, tuple)) or len(one) != 2), None)
        if odd is not None:
            raise InputError(f"{odd!r:.100} is not a pair; pass labels as [(id, label), …]")
        pairs = given
    else:
        raise InputError(
            f"the labels are {_describe(given)}; pass a file, a folder, [(id, label), …], a dictionary, a series with "
            "ids as its index, or a frame with the columns id and label"
        )
    return [Answer(str(as_text(id)), label) for id, label in pairs if not is_missing(label)]


def _pair_columns(frame: Any, id_column: str | None, label: str | None) -> Iterable[tuple[Any, Any]]:
    columns, label = list(frame.columns), label or "label"
    id = id_column or ("id" if "id" in columns or not hasattr(frame, "index") else None)
    lost = next((name for name in (id, label) if name is not None and name not in columns), None)
    if lost is not None:
        some = ", ".join(map(str, columns[:20]))
        raise InputError(
            f"the frame has no column {lost!r}; its columns are {some}: name them with id_column= and label="
        )
    return zip(list(frame.index if id is None else frame[id]), list(frame[label]), strict=True)


def _describe(given: Any) -> str:
    return f"of type {type(given).__name__}"
