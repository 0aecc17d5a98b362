"""How a user's file is read for a benchmark: the options of `ally.data.open_source`, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from ally.data.tables.columns import ColumnKind
from ally.errors import InputError


@dataclass(frozen=True)
class Reading:
    """A value that can be compared, hashed and sent to other processes. The reader decides fields left at their
    default."""

    id_column: str | None = None
    text: str | None = None
    image: str | None = None
    columns: tuple[tuple[str, ColumnKind | None], ...] | None = None
    folder: str | None = None
    encoding: str | None = None
    header: bool | None = None
    embeddings: str | None = None
    ids: str | None = None
    missing_label: str | int | None = None
    size: int | None = None
    channels: Literal["first", "last"] | None = None
    kind: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> Reading:
        """From the named options of `open_source`; files are given by their paths."""
        given = dict(options or {})
        known = [field.name for field in fields(cls)]
        odd = next((name for name in given if name not in known), None)
        if odd is not None:
            raise InputError(f"reading has no option {odd!r}; its options are {', '.join(known)}")
        for name in ("embeddings", "ids", "folder"):
            value = given.get(name)
            if value is not None and not isinstance(value, (str, Path)):
                raise InputError(f"{name} is a {type(value).__name__}; for a benchmark give the path of a file")
            given[name] = None if value is None else str(value)
        columns = given.get("columns")
        if columns is not None:
            if isinstance(columns, str):
                raise InputError.about("columns", columns, "is one text; pass a list of names")
            pairs = columns.items() if isinstance(columns, Mapping) else ((name, None) for name in columns)
            given["columns"] = tuple(pairs)
        return cls(**given)

    def options(self) -> dict[str, Any]:
        """The options that were given, for `open_source`."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.columns is not None:
            found["columns"] = dict(self.columns)
        return {name: value for name, value in found.items() if value is not None}

    def refuse(self, what: str) -> None:
        """Raises if any option was given, for data that are not a table."""
        for name, value in self.options().items():
            raise InputError.about(name, value, f"does not go with {what}; leave {name} out")
