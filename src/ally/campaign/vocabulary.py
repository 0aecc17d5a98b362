"""One class, one label: 3, 3.0 and "3" are the same class."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ally.sources.export.answers import reads
from ally.store import Store


class Vocabulary:
    """The different labels of a campaign by how they read, the first of those that read alike. Reads only what is new in the record."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first: dict[str, Any] = {}
        self._seen = 0
        self._lock = threading.Lock()

    def known(self) -> Mapping[str, Any]:
        with self._lock:
            values, self._seen = self._store.values(self._seen)
            if values:
                first = dict(self._first)
                for value in values:
                    first.setdefault(reads(value), value)
                self._first = first
            return self._first
