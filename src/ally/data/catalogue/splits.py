"""Test sets for data without an official one.

The order of rows comes from the raw output of a PCG64 bit generator, which numpy promises never to change. It depends
only on the number of rows, so every seed, strategy and machine has the same test set.
"""

from __future__ import annotations

import numpy as np

from ally.types import AnyArray, IntArray

SHARE = 0.2
"""The share of the rows (of each class, or of the groups) that becomes the test set."""
SEED = 2022


def fixed_order(n: int) -> IntArray:
    """A permutation of ``range(n)`` that is the same everywhere."""
    return np.argsort(np.random.PCG64(SEED).random_raw(n), kind="stable").astype(np.int64)


def holdout(n: int, classes: AnyArray | None = None, share: float = SHARE) -> tuple[IntArray, IntArray]:
    """Rows of pool and test, each ascending; `share` of every class if classes (n,) are given. A class always stays in
    the pool."""
    order = fixed_order(n)
    members = [order] if classes is None else [order[classes[order] == one] for one in np.unique(classes)]
    test = np.concatenate([rows[: min(round(share * len(rows)), len(rows) - 1)] for rows in members])
    return np.setdiff1d(np.arange(n), test).astype(np.int64), np.sort(test)


def holdout_groups(groups: AnyArray, share: float = SHARE) -> tuple[IntArray, IntArray]:
    """Rows of pool and test such that no group (n,) is on both sides; `share` of the groups are in the test set."""
    names = np.unique(groups)
    kept_out = names[fixed_order(len(names))[: max(1, round(share * len(names)))]]
    inside = np.isin(groups, kept_out)
    return np.flatnonzero(~inside).astype(np.int64), np.flatnonzero(inside).astype(np.int64)
