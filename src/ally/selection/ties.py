"""Which of equal scores goes first: a hash of the seed and the row.

The lowest rows would favour whatever a sorted pool begins with. A hash depends on nothing but the seed and the row, so
picks stay the same for any chunks, shards, threads and engine.
"""

from __future__ import annotations

import numpy as np

from ally.types import IntArray

TIES = "ties"
"""The name of the random stream."""


def tie_order(rows: IntArray, seed: int) -> IntArray:
    """A whole number for each row, (m,) int64, different for different rows: the finaliser of SplitMix64, which maps 64
    bits one to one."""
    bits = np.asarray(rows).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (bits ^ (bits >> np.uint64(31))).view(np.int64)
