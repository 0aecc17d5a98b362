"""Kills, many annotators, many samples: the benchmarks of the store at the size of a test, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ally import store as stores
from ally.store import NewSample, Ranked

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


def run(script: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, str(BENCHMARKS / script), *arguments], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "postgresql":
        request.getfixturevalue("postgresql")
    return name


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
def test_no_acknowledged_label_is_lost_to_kills(backend: str) -> None:
    figures = run("store_kill.py", "--kills", "100", "--backend", backend, "--server-crash-every", "50")
    assert figures["kills"] == 100
    assert figures["server_crashes"] == (2 if backend == "postgresql" else 0)
    assert figures["acknowledged"] > 100
    assert figures["models"] > 0
    assert figures["open_seconds_max"] < 1.0


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
def test_no_answer_is_lost_among_many_annotators(backend: str) -> None:
    figures = run("store_load.py", "--processes", "8", "--answers", "1500", "--batch", "10", "--backend", backend)
    assert figures["answers"] >= 1500


def test_two_hundred_thousand_samples(tmp_path: Path) -> None:
    n = 200_000

    def samples() -> Iterator[NewSample]:
        yield from (NewSample(f"folder/{row:07d}.jpg", label=None if row % 20 else "cat") for row in range(n))

    tracemalloc.start()
    store = stores.create(tmp_path / "a.db", {}, samples(), now=0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6, "creation holds more than a few pieces in memory"
    store.put_model(1.0, seen=0, labels=0, ranking=(Ranked(row, 1.0 - row / n) for row in range(0, n, 4)))
    for kind in ("active", "random"):
        began = time.perf_counter()
        query = store.ask("ann", 50, 2.0, 100.0, kind=kind)
        assert time.perf_counter() - began < 1.0, kind
        assert len(query.ids) == 50
    began = time.perf_counter()
    assert store.count(3.0).leased == 100
    assert time.perf_counter() - began < 3.0
    store.close()
