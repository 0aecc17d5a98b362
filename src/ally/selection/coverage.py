r"""Greedy coverage: each pick is the candidate x with the largest gain

    g(x) = Σ_z w_z max(0, k(z, x) − max_{c ∈ L ∪ S} k(z, c))

over targets z, with L the labelled, S the picks so far, and k a Gaussian or a ball.

Gains only fall as S grows, so three kinds of number bound g(x), each at least as large as the next: one computed before
an earlier pick; one from products in single precision (`Covering.bounds`); and g(x) itself, a float64 sum over the
targets in order, rounded to single precision so that rounding does not break ties (`Covering.gains`). Only the head of
the ranking is refined from one kind to the next, and it is offered once its number is a gain. The picks are those of
plain greedy with ties to the lowest position, for any number of threads or shards.

A centre adds to a target only if it is nearer than all others; after c centres, that is about one pair in c. Where
sketches of a few numbers (`SingleFrame.sketches`) leave few pairs to check, as they do for trained embeddings, bounds
come from those pairs alone. No pairs are stored. Apart from the targets, which are few, the ranking costs 9 bytes per
candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from ally.data import BLOCK, blocks
from ally.execution.engine import Crew
from ally.features import Representation
from ally.neighbours.loops import (
    Double,
    Doubles,
    Ints,
    Single,
    add_ball,
    add_ball_bound,
    add_ball_pairs,
    add_gaussian,
    add_gaussian_bound,
    add_gaussian_pairs,
    close_pairs,
    lower_to_row,
)
from ally.neighbours.screening import SingleFrame, Singles, find_frame, make_room
from ally.selection.points import Points, measure_gaps
from ally.selection.shards import Pick, Shard, best
from ally.types import IntArray

GROUP = 64
"""Candidates that share an entry of the ranking."""
FIRST_GROUPS, MOST_GROUPS = 32, 1024
"""Groups of the ranking whose heads are bounded together: few at first, twice as many each time."""
EARLIER, BOUND, GAIN = 0, 1, 2
FEW, REST = 16, 32
"""Sketches pay off if they leave one pair in `FEW`; otherwise they are skipped for this many blocks of targets."""
FEWEST, PER_PICK, MOST, PAIRS = 4 * BLOCK, 20, 32 * BLOCK, 2**28
"""See `representatives`."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some targets: their rows, the squared distance of each to its nearest centre, k at that distance, and w."""

    rows: Doubles
    singles: Singles
    sketches: Singles | None
    near: Double
    covered: Double
    weights: Double


class Kernel(Protocol):
    """k as a falling function of the squared distance, and how gains are added up."""

    def values(self, squared: Double) -> Double: ...

    def limits(self, block: Block) -> Double:
        """Squared distances beyond which a centre adds nothing to a target."""
        ...

    def add(self, total: Double, x: Doubles, block: Block) -> None:
        """The gain of each row x."""
        ...

    def add_pairs(self, total: Double, i: Ints, j: Ints, x: Doubles, block: Block) -> None:
        """An upper bound on the gain of each row, if only these pairs of a row and a target can gain."""
        ...

    def add_bound(self, total: Double, x: Singles, block: Block, scale: float, room: Single) -> None:
        """An upper bound on the gain of each row, from products written into `room`."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """k = exp(−‖x − x'‖² / width²)."""

    width: float

    def values(self, squared: Double) -> Double:
        return np.asarray(np.exp(-squared / self._square))

    def limits(self, block: Block) -> Double:
        return block.near

    def add(self, total: Double, x: Doubles, block: Block) -> None:
        add_gaussian(total, x, block.rows, block.near, block.covered, block.weights, self._square)

    def add_pairs(self, total: Double, i: Ints, j: Ints, x: Doubles, block: Block) -> None:
        add_gaussian_pairs(total, i, j, x, block.rows, block.near, block.covered, block.weights, self._square)

    def add_bound(self, total: Double, x: Singles, block: Block, scale: float, room: Single) -> None:
        rate = np.float32(min(np.log2(np.e) / (self._square * scale**2), 1e30))
        # A target that is a centre, or a copy of one, gains nothing, though rounding may say otherwise.
        covered, weights = (
            block.covered.astype(np.float32),
            np.where(block.near > 0.0, block.weights, 0.0).astype(np.float32),
        )
        add_gaussian_bound(total, x.products(block.singles, room), x.norms, block.singles.norms, covered, weights, rate)

    @property
    def _square(self) -> float:
        return max(self.width**2, 1e-300)


@dataclass(frozen=True)
class Ball:
    """k = 1 up to a distance of `radius`, 0 beyond. All weights are 1."""

    radius: float

    def values(self, squared: Double) -> Double:
        return (squared <= self.radius**2).astype(np.float64)

    def limits(self, block: Block) -> Double:
        return np.where(block.covered > 0.0, -np.inf, self.radius**2)

    def add(self, total: Double, x: Doubles, block: Block) -> None:
        add_ball(total, x, block.rows, block.covered, self.radius**2)

    def add_pairs(self, total: Double, i: Ints, j: Ints, x: Doubles, block: Block) -> None:
        add_ball_pairs(total, i, j, x, block.rows, block.covered, self.radius**2)

    def add_bound(self, total: Double, x: Singles, block: Block, scale: float, room: Single) -> None:
        square = np.float32(1.00001 * (self.radius * scale) ** 2)
        add_ball_bound(
            total,
            x.products(block.singles, room),
            x.norms,
            block.singles.norms,
            block.covered.astype(np.float32),
            square,
        )


@dataclass(frozen=True, eq=False)
class Targets:
    """The samples to cover, in the order they come into use. Workers share them and never change them."""

    rows: tuple[tuple[Doubles, Singles, Singles | None], ...]
    """Blocks of targets, and their frame in single precision."""
    weights: Double
    """(t,) w."""
    kernel: Kernel
    frame: SingleFrame


class Cover:
    """A pool to be covered.

    Args:
        points: the candidates.
        known: the labelled samples, which are centres from the start.
        order: (t,) positions of the targets among the candidates.
        weights: (t,) w.
        kernel: k.
    """

    def __init__(self, points: Points, known: Points, order: IntArray, weights: Double, kernel: Kernel) -> None:
        self._points, self._known, self._order = points, known, points.at(order)
        seen = find_frame(points, self._order)
        rows = [self._order[block] for block in blocks(len(order))]
        self.targets = Targets(
            tuple((some, seen.singles(some), seen.sketches(some)) for some in rows), weights, kernel, seen
        )

    def picks(
        self, crew: Crew, n: int, sizes: Callable[[int], int] | None = None, while_adding: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Positions of n picks and what each added, as a share of the total weight of the targets in use.

        The workers of the crew are `Covering` shards. Pick p counts the first `sizes(p)` targets, in whole blocks, or
        all of them. With `while_adding`, picking stops when nothing is added any more.
        """
        everything = len(self.targets.weights)
        positions, added = np.empty(n, dtype=np.int64), np.empty(n)
        size = min(sizes(0), everything) if sizes else everything
        offers = crew.each("offer", self._near(slice(0, size), positions[:0]))
        for pick in range(n):
            chosen = best(offers)
            if while_adding and chosen.value <= 0:
                return torch.from_numpy(positions[:pick]), torch.from_numpy(added[:pick])
            positions[pick], added[pick] = chosen.position, chosen.value / self.targets.weights[:size].sum()
            if pick + 1 < n:
                before, size = size, max(size, min(sizes(pick + 1), everything) if sizes else 0)
                offers = crew.each("take", chosen, self._near(slice(before, size), positions[: pick + 1]))
        return torch.from_numpy(positions), torch.from_numpy(added)

    def _near(self, some: slice, picks: IntArray) -> Double:
        """Squared distances of some targets to their nearest centre, known or picked."""
        here = self._order.at(np.arange(some.start, some.stop))
        return measure_gaps(here, self._known, self._points.at(picks))


class Covering:
    """A shard of candidates, and the targets in use with their nearest centre so far."""

    def __init__(self, features: Representation, unit: bool, targets: Targets, shard: Shard) -> None:
        self._points = Points(features(shard.view), unit)
        self._start = shard.start
        self._targets = targets
        self._near = np.empty(0)
        self._covered = np.empty(0)
        self._rest = 0
        self._room = make_room()
        self._ranking = Ranking(len(self._points))

    def offer(self, more: Double) -> Pick:
        """The largest gain in the shard, after adding targets whose squared distances to their nearest centre are
        `more`."""
        if len(more):
            before = len(self._near)
            self._near = np.concatenate([self._near, more])
            self._covered = self._targets.kernel.values(self._near)
            self._ranking.raise_by(lambda which: self.bounds(which, before))
        value, row = self._ranking.best(self.bounds, self.gains)
        return Pick(value, self._start + row, self._points[row : row + 1])

    def take(self, pick: Pick, more: Double) -> Pick:
        """The pick becomes a centre and is no longer a candidate."""
        for block in self._blocks():
            lower_to_row(block.near, block.rows, pick.row)
        self._covered = self._targets.kernel.values(self._near)
        self._ranking.age()
        if 0 <= pick.position - self._start < len(self._points):
            self._ranking.drop(pick.position - self._start)
        return self.offer(more)

    def bounds(self, which: slice | IntArray, since: int = 0) -> Double:
        """Upper bounds on what each row of `which` (at most a block) would add, counting targets from number `since`
        on, (m,)."""
        rows, seen = self._points[which], self._targets.frame
        singles, sketches = None, seen.sketches(rows)
        total = np.zeros(len(rows[0]))
        for block in self._blocks(since):
            if not self._add_few(total, rows, sketches, block):
                singles = singles or seen.singles(rows)
                self._targets.kernel.add_bound(total, singles, block, seen.scale, self._room)
        return total

    def gains(self, which: IntArray) -> Double:
        """What each row of `which` would add, rounded to single precision, (m,)."""
        rows = self._points[which]
        total = np.zeros(len(which))
        for block in self._blocks():
            self._targets.kernel.add(total, rows, block)
        return total.astype(np.float32).astype(np.float64)

    def _add_few(self, total: Double, rows: Doubles, sketches: Singles | None, block: Block) -> bool:
        """Adds bounds if sketches leave few pairs that can gain. If they do not, sketches are skipped for a while."""
        self._rest -= 1
        if sketches is None or block.sketches is None or self._rest > 0:
            return False
        room = 1 + len(rows[0]) * len(block.near) // FEW
        i, j = np.empty(room, np.int32), np.empty(room, np.int32)
        limits = (1.00001 * self._targets.frame.scale**2 * self._targets.kernel.limits(block)).astype(np.float32)
        count = close_pairs(
            sketches.products(block.sketches, self._room), sketches.norms, block.sketches.norms, limits, i, j
        )
        if count < 0:
            self._rest = REST
            return False
        self._targets.kernel.add_pairs(total, i[:count], j[:count], rows, block)
        return True

    def _blocks(self, since: int = 0) -> Iterator[Block]:
        for start in range(since, len(self._near), BLOCK):
            rows, singles, sketches = self._targets.rows[start // BLOCK]
            some = slice(start, start + len(singles))
            yield Block(rows, singles, sketches, self._near[some], self._covered[some], self._targets.weights[some])


class Ranking:
    """Rows ranked by an upper bound on the gain of each."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._upper = np.full((-(-size // GROUP), GROUP), -np.inf)
        self._upper.reshape(-1)[:size] = 0.0
        self._kind = np.zeros(self._upper.shape, dtype=np.int8)
        self._peaks = self._upper.max(1)

    def raise_by(self, bounds: Callable[[slice], Double]) -> None:
        """Adds to the numbers of all rows, block by block."""
        flat = self._upper.reshape(-1)
        for block in blocks(self._size):
            flat[block] += bounds(block)
        self._peaks = self._upper.max(1)
        self.age()

    def age(self) -> None:
        """Marks every number as out of date, because there is a new centre."""
        self._kind[:] = EARLIER

    def drop(self, row: int) -> None:
        """Takes a row out."""
        group, place = divmod(row, GROUP)
        self._upper[group, place] = -np.inf
        self._peaks[group] = self._upper[group].max()

    def best(self, bounds: Callable[[IntArray], Double], gains: Callable[[IntArray], Double]) -> tuple[float, int]:
        """The largest gain and the lowest row that has it; −∞ if no row is left."""
        heads = {EARLIER: FIRST_GROUPS, BOUND: 1}
        while True:
            group = int(self._peaks.argmax())
            place = int(self._upper[group].argmax())
            value, kind = float(self._upper[group, place]), int(self._kind[group, place])
            # No gain is negative, so a bound of 0 is the gain itself.
            if kind == GAIN or value <= 0.0:
                return value, group * GROUP + place
            self._advance(kind, heads[kind], bounds if kind == EARLIER else gains)
            heads[kind] = min(2 * heads[kind], MOST_GROUPS)

    def _advance(self, kind: int, count: int, numbers: Callable[[IntArray], Double]) -> None:
        """Computes the next kind of number for the heads of the `count` highest groups, and for other rows in them that
        are as high."""
        highest = (
            np.argpartition(-self._peaks, count)[:count] if count < len(self._peaks) else np.arange(len(self._peaks))
        )
        groups = np.union1d(highest, [self._peaks.argmax()])
        upper = self._upper[groups]
        row, place = np.nonzero((upper >= self._peaks[groups].min()) & (upper > 0.0) & (self._kind[groups] == kind))
        there = groups[row], place
        rows = GROUP * there[0] + there[1]
        found = np.concatenate([numbers(rows[block]) for block in blocks(len(rows))])
        self._upper[there] = np.minimum(self._upper[there], found)
        self._kind[there] = kind + 1
        self._peaks[groups] = self._upper[groups].max(1)


def representatives(pick: int, n: int, size: int) -> int:
    """How many of `size` candidates are targets for pick number `pick` (from 0) of n.

    Greedy picks overfit the targets they are measured on: with few targets per pick, much of the gain does not carry
    over to other samples. So there are at least 20 targets for each pick so far, doubling when needed, from 4096 up to
    32 768. A small pool starts with more, up to 2²⁸ pairs (a pool of 16 384 candidates is counted in full).
    """
    first = max(FEWEST, -(-PAIRS // (size * BLOCK)) * BLOCK)
    doubled = first << max(0, math.ceil(math.log2(PER_PICK * (pick + 1) / first)))
    return min(doubled, max(first, -(-PER_PICK * n // BLOCK) * BLOCK), MOST)
