"""Kills, many annotators, many rows: the campaign benchmarks at test size, each in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from ally import Campaign
from campaign_million import write_table

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


def run(script: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "postgresql":
        request.getfixturevalue("postgresql")
    return name


@pytest.mark.long
@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
def test_no_acknowledged_label_is_lost_to_kills(backend: str) -> None:
    """The script checks what must hold after each kill, and stops at the first violation; `make kill-test` kills more
    often."""
    figures = run("campaign_kill.py", "--kills", "25", "--backend", backend, "--server-crash-every", "10")
    assert figures["kills"] == 25
    assert figures["server_crashes"] == (2 if backend == "postgresql" else 0)
    assert figures["acknowledged"] > 25
    assert figures["acknowledged_undos"] > 0
    assert figures["models"] >= 2  # those that were waited for, after all had been killed
    assert figures["retrainer_hit_when"]["training"] > 0
    assert figures["open_seconds_max"] < 1.0
    assert figures["lock_seconds_max"] < 1.0


@pytest.mark.long
@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
def test_no_answer_is_lost_among_many_annotators(backend: str) -> None:
    figures = run("campaign_load.py", "--processes", "8", "--answers", "800", "--batch", "10", "--backend", backend)
    assert figures["answers"] >= 800


def test_creation_reads_the_source_in_bounded_memory(tmp_path: Path) -> None:
    """As objects of Python the rows of the table alone would take 13 MB."""
    write_table(tmp_path / "few.csv", 10)
    write_table(tmp_path / "many.csv", 12_000)
    Campaign.create(
        tmp_path / "few.db", tmp_path / "few.csv", automatic=False
    ).close()  # what is imported is not counted below
    tracemalloc.start()
    with Campaign.create(tmp_path / "many.db", tmp_path / "many.csv", automatic=False) as campaign:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert campaign.status().samples == 12_000
    assert peak < 8e6
