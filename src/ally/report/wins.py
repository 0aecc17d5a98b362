"""Wins, ties and losses of every series against every other, over data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ally.report.significance import PairedTest


class Record(NamedTuple):
    """A tie is a difference whose interval holds 0."""

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return f"{self.wins} / {self.ties} / {self.losses}"


def win_matrix(series: Sequence[str], tests: Sequence[PairedTest]) -> dict[tuple[str, str], Record]:
    """``matrix[row, column]``: data sets on which the row is better than, tied with, worse than the column.

    Pairs without an interval are not counted; a pair that was never compared has no entry.
    """
    matrix: dict[tuple[str, str], Record] = {}
    for test in tests:
        if test.low is None or test.high is None:
            continue
        won, lost = int(test.low > 0), int(test.high < 0)
        tie = 1 - won - lost
        for key, add in (((test.first, test.second), (won, tie, lost)), ((test.second, test.first), (lost, tie, won))):
            before = matrix.get(key, Record(0, 0, 0))
            matrix[key] = Record(*(a + b for a, b in zip(before, add, strict=True)))
    return {(row, column): matrix[row, column] for row in series for column in series if (row, column) in matrix}


def totals(series: Sequence[str], matrix: dict[tuple[str, str], Record]) -> dict[str, Record]:
    """Each row summed, for the series that have one."""
    rows = {name: [record for (row, _), record in matrix.items() if row == name] for name in series}
    return {name: Record(*map(sum, zip(*records, strict=True))) for name, records in rows.items() if records}
