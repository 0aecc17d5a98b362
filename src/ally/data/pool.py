"""The states of a pool: every row is exactly one of free, pending, labelled or ignored."""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

from ally.errors import AnswerError, PoolExhausted
from ally.types import FloatArray, IntArray


class State(enum.IntEnum):
    FREE = 0
    PENDING = 1
    LABELLED = 2
    IGNORED = 3


class Pool:
    """The paper's L and U by row number, plus rows being asked about (pending) and rows left out (ignored)."""

    def __init__(self, labels: FloatArray) -> None:
        """`labels` (n,): encoded labels, NaN where unlabelled."""
        self._labels = np.array(labels, dtype=np.float64)
        self._states: NDArray[np.int8] = np.where(np.isnan(self._labels), State.FREE, State.LABELLED).astype(np.int8)
        self._holders = np.zeros(len(self._labels), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._states)

    def rows(self, state: State) -> IntArray:
        """Rows in `state`, ascending."""
        return np.flatnonzero(self._states == state).astype(np.int64)

    def state(self, row: int) -> State:
        return State(int(self._states[row]))

    def labels(self, rows: IntArray) -> FloatArray:
        """Encoded labels of labelled rows."""
        self._ensure(rows, State.LABELLED)
        return self._labels[rows]

    def ensure_free(self, n: int) -> None:
        available = len(self.rows(State.FREE))
        if n > available:
            raise PoolExhausted(available, n, len(self.rows(State.PENDING)))

    def restrict(self, rows: IntArray) -> None:
        """Allows queries for `rows` only: all other free rows become ignored."""
        free = self._states == State.FREE
        free[rows] = False
        self._states[free] = State.IGNORED

    def lend(self, rows: IntArray, holder: int) -> None:
        """FREE to PENDING: query number `holder` is asking about the rows."""
        self._ensure(rows, State.FREE)
        self._states[rows] = State.PENDING
        self._holders[rows] = holder

    def held(self, holder: int) -> IntArray:
        """Rows pending for query number `holder`, ascending."""
        return np.flatnonzero((self._states == State.PENDING) & (self._holders == holder)).astype(np.int64)

    def release(self, holder: int) -> int:
        """PENDING to FREE for the rows of one query. Returns how many."""
        rows = self.held(holder)
        self._states[rows] = State.FREE
        return len(rows)

    def label(self, row: int, label: float) -> None:
        """Any state to LABELLED, but an existing label is never replaced by a different one."""
        if self._states[row] == State.LABELLED and self._labels[row] != label:
            raise AnswerError(f"row {row} is labelled {self._labels[row]:g} and the new answer is {label:g}")
        self._labels[row] = label
        self._states[row] = State.LABELLED

    def ignore(self, row: int) -> None:
        """FREE or PENDING to IGNORED."""
        if self._states[row] == State.LABELLED:
            raise AnswerError(f"row {row} is already labelled and cannot be skipped")
        self._states[row] = State.IGNORED

    def _ensure(self, rows: IntArray, state: State) -> None:
        wrong = rows[self._states[rows] != state]
        if len(wrong):
            raise AnswerError(f"row {wrong[0]} is {self.state(int(wrong[0])).name.lower()}, not {state.name.lower()}")
