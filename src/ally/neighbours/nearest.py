"""The exact nearest neighbours of rows: those of one loop over all pairs, found with few distances computed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ally.data import blocks
from ally.neighbours.loops import Double, Ints, keep_nearest
from ally.neighbours.screening import FactorRows, find_frame, make_room
from ally.types import IntArray

HELD = 8
"""Blocks of points held in double and single precision at a time."""


class Neighbours(NamedTuple):
    """The k nearest points of each of m rows, the nearest first; of equal distances the lowest number first."""

    numbers: Ints
    """(m, k), −1 where there are fewer."""
    squared: Double
    """(m, k) squared distances, infinite where there are fewer."""


def find_nearest(
    rows: FactorRows, points: FactorRows, k: int = 1, marks: tuple[IntArray, IntArray] | None = None
) -> Neighbours:
    """The k nearest points of each row. With `marks` of the rows and of the points, only points of another mark
    count."""
    squared, numbers = np.full((len(rows), k), np.inf), np.full((len(rows), k), -1, np.int32)
    if not len(rows) or not len(points) or not k:
        return Neighbours(numbers, squared)
    row_marks, point_marks = marks or (np.zeros(len(rows), np.int64), np.ones(len(points), np.int64))
    frame, room = find_frame(rows, points), make_room()
    steps = list(blocks(len(points)))
    for first in range(0, len(steps), HELD):
        held = [(some, z, frame.singles(z)) for some in steps[first : first + HELD] for z in [points[some]]]
        for block in blocks(len(rows)):
            x = rows[block]
            x_singles = frame.singles(x)
            for some, z, z_singles in held:
                keep_nearest(
                    squared[block],
                    numbers[block],
                    x_singles.products(z_singles, room),
                    x_singles.norms,
                    z_singles.norms,
                    frame.scale**2,
                    x,
                    z,
                    some.start,
                    row_marks[block],
                    point_marks[some],
                )
    return Neighbours(numbers, squared)
