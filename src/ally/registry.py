"""Named catalogues with an error that lists what exists."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from ally.errors import InputError, UnknownName

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to entries of one `kind`, in the order they were added."""

    def __init__(self, kind: str, entries: Mapping[str, T] | None = None) -> None:
        self.kind = kind
        self._entries: dict[str, T] = dict(entries or {})

    def add(self, name: str, entry: T) -> T:
        if name in self._entries:
            raise InputError(f"the {self.kind} {name!r} is already registered; choose another name")
        self._entries[name] = entry
        return entry

    def replace(self, name: str, entry: T) -> T:
        """Add an entry, in the place of one of this name if there is one."""
        self._entries[name] = entry
        return entry

    def remove(self, name: str) -> None:
        del self._entries[name]

    def __getitem__(self, name: str) -> T:
        if name in self._entries:
            return self._entries[name]
        close = difflib.get_close_matches(str(name), self._entries, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownName(f"unknown {self.kind} {name!r}; {hint}known: {', '.join(self._entries)}")

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
