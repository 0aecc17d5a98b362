"""The contract, on every backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ally.testing.store import CHECKS, Check, Create


@pytest.mark.filterwarnings("ignore:.*is in WAL mode:RuntimeWarning")
@pytest.mark.parametrize("backend", ["memory", "sqlite", "sqlite-wal", "postgresql"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(backend: str, check: Check, maker: Callable[[str], Create]) -> None:
    check(maker(backend))
