"""Labels by id, from a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ally.data.export.cells import WRITTEN
from ally.data.given_labels import is_marked
from ally.data.identity import is_missing
from ally.data.tables import BadRow, open_rows
from ally.errors import IdError, InputError, LabelError


def read_labels(path: Path, missing_label: Any = None) -> dict[Any, Any]:
    """Labels by id from a table with the columns ``id`` and ``label``; rows whose label is empty, or `missing_label`,
    are left out.

    Words such as NA or None are labels like any other. A column of numbers is read as numbers if every entry is written
    that way.
    """
    if not path.is_file():
        met = "a folder" if path.is_dir() else "missing"
        raise InputError(f"{path} is {met}; give the path of a file with the columns id and label")
    rows = open_rows(path)
    lost = next((name for name in ("id", "label") if name not in rows.columns), None)
    if lost is not None:
        raise LabelError(
            f"{path} has no column {lost!r}; it needs the columns id and label, and has {', '.join(rows.columns[:20])}"
        )
    ids: list[Any] = []
    labels: list[Any] = []
    for row in rows.scan():
        if isinstance(row, BadRow):
            raise InputError(f"{row.name} of {path}: {row.reason}; correct the file")
        label = row.values.get("label")
        if not is_missing(label) and not is_marked(label, missing_label):
            ids.append(row.values.get("id"))
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
