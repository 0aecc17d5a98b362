"""Randomness as an argument: one seed, one independent stream per named purpose."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ally.errors import InputError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Streams:
    """Random streams derived from one seed. A stream depends on its name only, not on the order of use."""

    entropy: int
    path: tuple[str, ...] = ()

    def child(self, *names: str) -> Streams:
        """The family of streams below `names`, e.g. one per round."""
        return Streams(self.entropy, (*self.path, *names))

    def seed(self, name: str) -> int:
        """A 63-bit seed for the purpose `name`."""
        return int(self._sequence(name).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def numpy(self, name: str) -> np.random.Generator:
        return np.random.default_rng(self._sequence(name))

    def torch(self, name: str) -> torch.Generator:
        import torch

        return torch.Generator().manual_seed(self.seed(name))

    def _sequence(self, name: str) -> np.random.SeedSequence:
        key = tuple(zlib.crc32(part.encode()) for part in (*self.path, name))
        return np.random.SeedSequence(self.entropy, spawn_key=key)


def streams(random_state: Any = None) -> Streams:
    """Streams from what scikit-learn users pass as ``random_state``: None, an int, a RandomState or a Generator."""
    if random_state is None:
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        return Streams(entropy)
    if isinstance(random_state, Streams):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return Streams(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return Streams(int(random_state.randint(2**31)))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return Streams(int(random_state))
    raise InputError.about("random_state", random_state, "is not a seed; pass None, an int >= 0 or a numpy Generator")


_TORCH_GENERATORS = threading.RLock()
"""The generators are the process's: two seeded blocks must not interleave."""


@contextmanager
def seeded_torch(seed: int, device: str = "cpu") -> Iterator[None]:
    """Runs a block with torch's global generators seeded (weights, dropout) and restores them afterwards."""
    import torch

    device_type = torch.device(device).type
    devices = [torch.device(device)] if device_type == "cuda" else []
    with _TORCH_GENERATORS, torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed(seed)
        yield
