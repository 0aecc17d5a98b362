from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ally.store import NewSample, Store
from ally.store import create as create_store
from ally.store.sqlite import Journal
from ally.testing.store import Create


@pytest.fixture
def maker(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Create]:
    """`maker(backend)` creates stores of that kind in fresh places."""
    numbers = itertools.count()

    def make(backend: str) -> Create:
        def place() -> str | Path:
            if backend == "postgresql":
                url: str = request.getfixturevalue("new_database")()
                return url
            return backend if backend == "memory" else tmp_path / f"{next(numbers)}.db"

        def create(settings: Any, samples: Iterable[NewSample], seed: int, **more: Any) -> Store:
            journal: Journal = "wal" if backend == "sqlite-wal" else "rollback"
            return create_store(place(), settings, samples, now=0.0, seed=seed, sqlite_journal=journal, **more)

        return create

    return make
