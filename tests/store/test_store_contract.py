"""The contract, on every backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ally.testing.store import CHECKS, Check, Create
from ally.testing.store.lifecycle import CHECKS as LIFECYCLE

BACKENDS = ["memory", "sqlite", "sqlite-wal", "postgresql"]
JOURNALS = {*(check.__name__ for check in LIFECYCLE), "the_same_key_at_once", "a_random_history_against_its_twin"}
"""Where the journal of SQLite matters: files, threads, backups, many writes. The other checks are slow with a second
journal."""


def cases() -> Iterator[Any]:
    for check in CHECKS:
        for backend in BACKENDS:
            slow = backend == "sqlite-wal" and check.__name__ not in JOURNALS
            marks = [pytest.mark.slow] if slow else []
            yield pytest.param(backend, check, id=f"{check.__name__}-{backend}", marks=marks)


@pytest.mark.filterwarnings("ignore:.*is in WAL mode:RuntimeWarning")
@pytest.mark.parametrize(("backend", "check"), list(cases()))
def test_contract(backend: str, check: Check, maker: Callable[[str], Create]) -> None:
    check(maker(backend))
