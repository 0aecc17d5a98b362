"""Names shared by every layer."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Task: TypeAlias = Literal["classification", "regression"]
BOTH_TASKS: frozenset[Task] = frozenset({"classification", "regression"})
CLASSIFICATION: frozenset[Task] = frozenset({"classification"})
REGRESSION: frozenset[Task] = frozenset({"regression"})

AnyArray: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

Progress: TypeAlias = Callable[[str, int, int], None]
"""``progress(stage, done, total)``, called from the thread that does the work."""


class _Sentinel(enum.Enum):
    SKIP = "SKIP"
    NULL = "NULL"

    def __repr__(self) -> str:
        return f"ally.{self.name}"


SKIP = _Sentinel.SKIP
"""The answer "do not ask about this sample again"."""

NULL = _Sentinel.NULL
"""Default of ``missing_label``: None, NaN and pandas.NA mark unlabelled samples."""

LONGEST_ID, MOST_BYTES = 1000, 2500
"""Characters of an id, and its bytes in UTF-8: PostgreSQL's indexes hold no longer ones."""
