"""Every hostile file gets its documented answer, in bounded time and memory, and does nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from case import HostileCase
from corpus import collect_cases
from watching import Watcher

CASES = collect_cases()


@pytest.fixture(scope="module")
def watcher() -> Iterator[Watcher]:
    made = Watcher()
    yield made
    made.close()


@pytest.mark.xdist_group("hostile")
@pytest.mark.parametrize("case", [case for case in CASES if case.short], ids=str)
def test_a_hostile_file_gets_its_answer(watcher: Watcher, tmp_path: Path, case: HostileCase) -> None:
    check_case(watcher, tmp_path, case, 1)


@pytest.mark.slow
@pytest.mark.xdist_group("hostile")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_command_answers_a_hostile_file(watcher: Watcher, tmp_path: Path, case: HostileCase) -> None:
    check_case(watcher, tmp_path, case, None)


def check_case(watcher: Watcher, folder: Path, case: HostileCase, most: int | None) -> None:
    for outcome in watcher.run_case(case, folder, most):
        fault = outcome.find_fault(case.answer)
        assert fault is None, f"{' '.join(outcome.words)}: {fault}\n{outcome.printed}"
