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
from store_server import programs

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


Figures = dict[str, dict[str, Any]]


def run(script: str, *arguments: str) -> Figures:
    """What the script measured, by backend."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return {line["backend"]: line for line in map(json.loads, done.stdout.splitlines())}


BACKENDS = ["sqlite", "postgresql"]
KILLS = 25
"""Of each backend."""


@pytest.fixture(scope="module")
def present() -> list[str]:
    """Backends this machine has: one process serves them all."""
    return BACKENDS if programs() is not None else BACKENDS[:1]


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "postgresql":
        request.getfixturevalue("postgresql")
    return name


@pytest.fixture(scope="module")
def killed(present: list[str]) -> Figures:
    kills = str(KILLS * len(present))
    return run("campaign_kill.py", "--kills", kills, "--backend", *present, "--server-crash-every", "10")


@pytest.fixture(scope="module")
def loaded(present: list[str]) -> Figures:
    return run("campaign_load.py", "--processes", "8", "--answers", "400", "--batch", "5", "--backend", *present)


@pytest.mark.long
@pytest.mark.xdist_group("kills")
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_no_acknowledged_label_is_lost_to_kills(backend: str, killed: Figures) -> None:
    """The script checks what must hold after each kill, and stops at the first violation; `make kill-test` kills more
    often."""
    figures = killed[backend]
    assert figures["kills"] == KILLS
    assert figures["server_crashes"] == (2 if backend == "postgresql" else 0)
    assert figures["acknowledged"] > 25
    assert figures["acknowledged_undos"] > 0
    assert figures["models"] >= 2  # those that were waited for, after all had been killed
    assert figures["retrainer_hit_when"]["training"] > 0
    assert figures["open_seconds_max"] < 1.0
    assert figures["lock_seconds_max"] < 1.0


@pytest.mark.long
@pytest.mark.xdist_group("annotators")
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_no_answer_is_lost_among_many_annotators(backend: str, loaded: Figures) -> None:
    assert loaded[backend]["answers"] >= 400


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
