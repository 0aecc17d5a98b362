"""Memory budgets, and scratch space that moves to disk above them."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import IO, TypeVar

import numpy as np
import torch

from ally.checks import check_count
from ally.errors import MemoryBudgetExceeded

T = TypeVar("T")


def default_budget() -> int:
    """A quarter of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def check_budget(needed: int, budget: int, what: str, remedy: str) -> None:
    """Raises before the work starts if it needs more bytes than the budget."""
    if needed > budget:
        raise MemoryBudgetExceeded(
            f"{what} needs {needed / 2**20:,.0f} MiB and memory_budget is {budget / 2**20:,.0f} MiB; {remedy}"
        )


class Scratch:
    """Float tensors for one query: in memory up to `budget` bytes in total, in a memory map beyond.

    A map's file has no name, so the system reclaims its space when the query ends, even by ``kill -9``. The files are
    in Python's temporary folder (``TMPDIR``).
    """

    def __init__(self, budget: int | None = None) -> None:
        self.budget = default_budget() if budget is None else check_count("memory_budget", budget, least=0)
        self.mapped = 0
        """Bytes in memory maps."""
        self._used = 0
        self._files: list[IO[bytes]] = []
        self._others = ExitStack()

    def until_the_end(self, other: AbstractContextManager[T]) -> T:
        """Enters a context that ends with this one."""
        return self._others.enter_context(other)

    def empty(self, *shape: int) -> torch.Tensor:
        """An uninitialised float32 tensor."""
        size = 4 * int(np.prod(shape, dtype=np.int64))
        if self._used + size <= self.budget or size == 0:
            self._used += size
            return torch.empty(shape)
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if size > free:
            raise MemoryBudgetExceeded(
                f"{size / 2**20:,.0f} MiB above memory_budget need disk space, and {folder} has {free / 2**20:,.0f} "
                "MiB free; set TMPDIR to a folder on a larger disk, raise memory_budget, or pass fewer `candidates`"
            )
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, closed in __exit__
        self._files.append(file)
        self.mapped += size
        return torch.from_numpy(np.memmap(file, dtype=np.float32, mode="w+", shape=shape))

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            file.close()
        self._files = []
        self._others.__exit__(kind, error, trace)
