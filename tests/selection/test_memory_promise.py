"""Beyond the embeddings and probabilities, selection adds O(n) scalars and O(chunk): measured, not argued."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from ally.execution.memory import MemoryBudgetExceeded
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection import Influence
from ally.selection.base import Limits
from ally.selection.fisher_greedy import memory
from ally.strategies import CATALOGUE

N, D, C, LABELLED = 60_000, 64, 10, 500
SCALARS = 16
"""How many numbers of 8 bytes a candidate may cost."""
CHUNKS = 96 * 2**20
"""Other bytes: blocks, samples, compiled code."""
# What is larger than that is caught: it is 103 MiB; n×labelled is 114 MiB, n×(dC) 146 MiB.

SELECTIONS = {
    name: CATALOGUE[name].select
    for name in (
        "ally-paper",
        "margin",
        "badge",
        "coreset",
        "kmeanspp",
        "lcmd",
        "powerbald",
        "maxherding",
        "uherding",
        "probcover",
        "typiclust",
        "cluster-margin",
        "dropquery",
    )
} | {"ally, numbers": Influence()}
"""`ally` chooses classes as `uherding` does."""


def peak() -> int:
    """The most memory this process has had since the last reset, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def large() -> Snapshot:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(200, D)).astype(np.float32)

    def view(n: int, start: int) -> View:
        embeddings = torch.from_numpy(
            centres[rng.integers(200, size=n)] + 0.3 * rng.normal(size=(n, D)).astype(np.float32)
        )
        probabilities = torch.from_numpy(rng.dirichlet(np.full(C, 0.2), size=n).astype(np.float32))
        return View(np.arange(start, start + n), embeddings, probabilities, probabilities.argmax(1))

    return Snapshot("classification", view(N, 0), view(LABELLED, N), torch.zeros(LABELLED, dtype=torch.float64))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("name", SELECTIONS)
def test_selection_adds_scalars_and_chunks(name, large):
    small = Snapshot("classification", large.candidates.at(torch.arange(3000)), large.labelled, large.labels)
    scores = torch.from_numpy(np.random.default_rng(1).random(N))
    SELECTIONS[name](small, scores[:3000], 10, Streams(0), Limits())  # compiles and loads what it needs
    if not reset_peak():
        pytest.skip("this system does not let a process reset its peak memory")
    before = peak()
    chosen = SELECTIONS[name](large, scores, 40, Streams(0), Limits())
    added = peak() - before
    assert len(set(chosen.rows.tolist())) == 40
    assert added < 8 * SCALARS * N + CHUNKS, f"{added / 2**20:.0f} MiB added"


def test_bait_says_what_it_needs_before_it_starts(large):
    with pytest.raises(MemoryBudgetExceeded, match="BAIT"):
        CATALOGUE["bait"].select(
            large, torch.zeros(N, dtype=torch.float64), 10, Streams(0), Limits(memory_budget=10 * 2**20)
        )


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc")
def test_bait_needs_no_more_than_it_says(large):
    some = torch.arange(20_000)
    snapshot, scores = (
        Snapshot("classification", large.candidates.at(some), large.labelled, large.labels),
        torch.zeros(len(some)),
    )
    small = Snapshot("classification", large.candidates.at(some[:3000]), large.labelled, large.labels)
    CATALOGUE["bait"].select(small, scores[:3000], 10, Streams(0), Limits())
    if not reset_peak():
        pytest.skip("this system does not let a process reset its peak memory")
    before = peak()
    chosen = CATALOGUE["bait"].select(snapshot, scores, 20, Streams(0), Limits())
    added = peak() - before
    assert len(set(chosen.rows.tolist())) == 20
    assert added < memory(len(some), D, C, 1), f"{added / 2**20:.0f} MiB added"
