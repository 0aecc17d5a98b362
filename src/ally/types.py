"""Names shared by every layer."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Task: TypeAlias = Literal["classification", "regression"]
PlainModel: TypeAlias = Literal["linear", "trees"]
"""What a model can be copied as, to do without the pool."""
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


def find_text_fault(text: str, longest: int | None = None) -> str | None:
    """Why a text cannot be kept, in words with the next step; None if it can. Every text that is stored is valid
    Unicode, so that it can be sent and shown, and has no NUL, which databases and other programs end it at."""
    if longest is not None and len(text) > longest:
        return f"has {len(text)} characters, and at most {longest} are allowed; shorten it"
    if "\x00" in text:
        return "holds a NUL character; remove it"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode (a file name in another encoding, half of an emoji?); write it anew"
    return None
