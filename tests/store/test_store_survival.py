"""Many samples; kills and many annotators are in `tests/campaign/test_survival.py`."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from ally import store as stores
from ally.store import NewSample, Ranked


@pytest.mark.parametrize("n", [50_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_many_samples(tmp_path: Path, n: int) -> None:

    def samples() -> Iterator[NewSample]:
        yield from (NewSample(f"folder/{row:07d}.jpg", label=None if row % 20 else "cat") for row in range(n))

    tracemalloc.start()
    store = stores.create(tmp_path / "a.db", {}, samples(), now=0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6, "creation holds more than a few pieces in memory"
    store.models.put(1.0, seen=0, labels=0, ranking=(Ranked(row, 1.0 - row / n) for row in range(0, n, 4)))
    for kind in ("active", "random"):
        began = time.perf_counter()
        query = store.ask("ann", 50, 2.0, 100.0, kind=kind)
        assert time.perf_counter() - began < 1.0, kind
        assert len(query.ids) == 50
    began = time.perf_counter()
    assert store.count(3.0).leased == 100
    assert time.perf_counter() - began < 3.0
    store.close()
