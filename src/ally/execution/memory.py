"""Memory budgets, and scratch space that moves to disk above them."""

from __future__ import annotations

import os
import shutil
import tempfile
from types import TracebackType

import numpy as np
import torch

from ally.checks import check_count
from ally.errors import MemoryBudgetExceeded


def default_budget() -> int:
    """A quarter of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def check_budget(needed: int, budget: int, what: str, remedy: str) -> None:
    """Raises before the work starts if it needs more bytes than the budget."""
    if needed > budget:
        raise MemoryBudgetExceeded(f"{what} needs {needed / 2**20:,.0f} MiB and memory_budget is {budget / 2**20:,.0f} MiB; {remedy}")


class Scratch:
    """Float tensors for one query: in memory up to `budget` bytes in total, in a memory map beyond. Removed on exit."""

    def __init__(self, budget: int | None = None) -> None:
        self.budget = default_budget() if budget is None else check_count("memory_budget", budget, least=0)
        self._used = 0
        self._folder: str | None = None
        self._files = 0

    def empty(self, *shape: int) -> torch.Tensor:
        """An uninitialised float32 tensor."""
        size = 4 * int(np.prod(shape, dtype=np.int64))
        if self._used + size <= self.budget or size == 0:
            self._used += size
            return torch.empty(shape)
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="ally-")
        self._files += 1
        path = os.path.join(self._folder, f"{self._files}.f32")
        return torch.from_numpy(np.memmap(path, dtype=np.float32, mode="w+", shape=shape))

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
