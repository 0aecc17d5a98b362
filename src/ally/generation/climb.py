r"""Samples on their way up.

The predicted dual has creases, where two classes are equally likely or a unit switches on. There the gradient of one
side leads across, and plain gradient steps zigzag without getting on. A step that does not raise the dual is therefore
not taken but learnt from: the heading becomes the shortest convex combination of the planes met on both sides,

.. math:: h = a + t (b - a),\quad t = \arg\min_{0 \le t \le 1} \tfrac{\tau}{2} \lVert a + t (b - a) \rVert_K^2 + t (e_b
- e_a)

with slopes a (so far) and b (beyond), and e how far each plane lies above the sample; along K h both rise. K is the
identity unless the steps are smoothed, and τ the length of the step over ‖K a‖. The next step is half as long, and no
longer than to where the planes cross; a step that is taken doubles it.

A sample that is stuck jumps: from the best place it has seen, in a random direction, twice as far each time. It climbs
on from there, and the best place is what counts in the end. Stuck is a sample without a way up, and one that has hardly
moved for `PATIENCE` steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from ally.errors import NonFiniteScore
from ally.generation.dual import DualOf
from ally.generation.progression import Moment, Stop
from ally.generation.smooth import Soften

SMALLEST = 2.0**-16
"""A step shorter than this times the full one counts as none."""
ENOUGH = 0.01
"""A step is taken if it gains this share of what the slope promises."""
PATIENCE = 20
"""A sample that has moved less than one full step in this many steps is stuck."""
TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True, eq=False)
class Rules:
    """What every step keeps to; D features."""

    low: torch.Tensor
    high: torch.Tensor
    """(D,) the range of every feature."""
    spread: torch.Tensor
    """(D,) units of the features."""
    full: float
    """Euclidean length of a full step, in units of the spread."""
    top: float = math.inf
    """No step leads above this log(1 + λ)."""
    jumps: int = 0
    """How often a sample that is stuck may jump."""
    soften: Soften | None = None
    """K, if the steps are smoothed."""

    def clip(self, x: torch.Tensor) -> torch.Tensor:
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def smoothed(self, slope: torch.Tensor) -> torch.Tensor:
        return slope if self.soften is None else self.soften(slope)

    def leap(self, number: int) -> float:
        """Length of a jump: twice that of the one before, no longer than the range."""
        return min(self.full * 2.0**number, float(_norm(((self.high - self.low) / self.spread)[None])))


@dataclass(eq=False)
class Climb:
    """n samples `x` (n, D), flat, within their range; `noise` gives the jump of a number a direction, (D,)."""

    dual: DualOf
    shape: tuple[int, ...]
    x: torch.Tensor
    rules: Rules
    noise: Callable[[int], torch.Tensor]
    stops: list[Stop | None] = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.x)
        self.stops = [None] * n
        self.moving = torch.ones(n, dtype=torch.bool)
        self.jumped = torch.zeros(n, dtype=torch.int64)
        self.length = torch.full((n,), self.rules.full, dtype=torch.float64)
        self.reach = self.length
        self.value, self.slope, self.way = self._look(self.x, 0)
        self.heading, self.course, self.above = self.slope, self.way, torch.zeros(n, dtype=torch.float64)
        self.best, self.highest = self.x, self.value
        self.mark, self.age = self.x, torch.zeros(n, dtype=torch.int64)

    def step(self, number: int) -> None:
        """One step of every sample that still moves: up, or away from where it is stuck."""
        self._end(self.value >= self.rules.top, "ceiling")
        leaving = self._stuck()
        if not bool(self.moving.any()):
            return
        there = torch.where(leaving[:, None], self._aside(leaving), self._ahead())
        value, slope, way = self._look(there, number)
        moved = (there - self.x) / self.rules.spread
        enough = value - self.value >= ENOUGH * (self.slope * moved).sum(1).clamp(min=TINY)
        # Not lower and still uphill: so it is on the plain of very sure predictions, and not where a step has crossed a
        # peak.
        onward = (value >= self.value) & ((slope * moved).sum(1) > 0)
        taken = self.moving & (enough | onward | leaving) & (value <= self.rules.top)
        self._turn(~taken & (value <= self.rules.top), value, slope, way, moved)
        longer = torch.where(leaving, self.rules.full, 2 * self.length).clamp(max=self.rules.full)
        self.length = torch.where(taken, longer, self.length / 2)
        self.reach = torch.where(taken, self.length, torch.minimum(self.reach, self.length))
        wide = taken[:, None]
        self.x, self.value = torch.where(wide, there, self.x), torch.where(taken, value, self.value)
        self.slope, self.way = torch.where(wide, slope, self.slope), torch.where(wide, way, self.way)
        self.heading, self.course = torch.where(wide, slope, self.heading), torch.where(wide, way, self.course)
        self.above = torch.where(taken, 0.0, self.above)
        self._remember(taken & leaving)
        self._end(self._spent() & (value > self.rules.top), "ceiling")

    def settle(self) -> None:
        """Every sample stops."""
        self.moving = torch.zeros_like(self.moving)

    @property
    def place(self) -> torch.Tensor:
        """(n, D) where each sample is; once it has stopped, that is the best place it has seen."""
        return torch.where(self.moving[:, None], self.x, self.best)

    def moment(self) -> Moment:
        """Samples, predicted λ, predictions and probabilities now."""
        samples = self.place.reshape(-1, *self.shape)
        with torch.no_grad():
            seen = self.dual.view(samples)
        probabilities = None if seen.probabilities is None else seen.probabilities.numpy()
        return Moment(samples.numpy(), self.dual.head.duals(seen).numpy(), seen.predictions.numpy(), probabilities)

    def _stuck(self) -> torch.Tensor:
        """Samples that are to jump, (n,); those that are stuck for want of a way and may not jump any more stop."""
        ends: dict[Stop, torch.Tensor] = {
            "flat": _norm(self.way) == 0,
            "corner": _norm(self._inward(self.way)) == 0,
            "peak": (_norm(self._inward(self.course)) == 0) | self._spent(),
        }
        may = self.jumped < self.rules.jumps
        stuck = (self.age >= PATIENCE) & (_norm((self.x - self.mark) / self.rules.spread) < self.rules.full)
        for why, which in ends.items():
            self._end(which & ~may, why)
            stuck = stuck | which
        return self.moving & may & stuck

    def _ahead(self) -> torch.Tensor:
        """Where a step along the heading leads, (n, D)."""
        free = self._inward(self.course)
        return self.rules.clip(self.x + self.rules.spread * (self.reach / _norm(free).clamp(min=TINY))[:, None] * free)

    def _aside(self, leaving: torch.Tensor) -> torch.Tensor:
        """Where the jump of those who leave leads, (n, D)."""
        there = self.best.clone()
        for place in leaving.nonzero().squeeze(1).tolist():
            self.jumped[place] += 1
            number = int(self.jumped[place])
            way = self.rules.smoothed(self.noise(number)[None])
            there[place] += self.rules.spread * (self.rules.leap(number) * way / _norm(way).clamp(min=TINY))[0]
        return self.rules.clip(there)

    def _remember(self, landed: torch.Tensor) -> None:
        """Keeps the best place, and sets a new mark for those who have jumped or whose mark is old."""
        higher = self.moving & (self.value > self.highest)
        self.best = torch.where(higher[:, None], self.x, self.best)
        self.highest = torch.where(higher, self.value, self.highest)
        renew = landed | (self.age >= PATIENCE)
        self.mark = torch.where(renew[:, None], self.x, self.mark)
        self.age = torch.where(renew, 0, self.age + 1)

    def _turn(
        self, refused: torch.Tensor, value: torch.Tensor, slope: torch.Tensor, way: torch.Tensor, moved: torch.Tensor
    ) -> None:
        """Combines the heading with the plane met at a place that was refused."""
        beyond = (value - (slope * moved).sum(1) - self.value).clamp(min=0.0)
        pace = self.length / _norm(self.course).clamp(min=TINY)
        across, aslant, gap = slope - self.heading, way - self.course, beyond - self.above
        share = ((-(self.heading * aslant).sum(1) - gap / pace) / (across * aslant).sum(1).clamp(min=TINY)).clamp(
            0.0, 1.0
        )
        share = torch.where(refused, share, 0.0)
        course = self.course + share[:, None] * aslant
        unit = course / _norm(course).clamp(min=TINY)[:, None]
        falls, rises = (slope * unit).sum(1), (self.heading * unit).sum(1)
        crossing = gap.clamp(min=0.0) / (rises - falls).clamp(min=TINY)
        self.reach = torch.where((share > 0) & (falls < 0), crossing, self.length)
        self.heading, self.course, self.above = self.heading + share[:, None] * across, course, self.above + share * gap

    def _inward(self, way: torch.Tensor) -> torch.Tensor:
        """Without the features that are at their bound and would leave it."""
        return way.masked_fill(
            ((self.x >= self.rules.high) & (way > 0)) | ((self.x <= self.rules.low) & (way < 0)), 0.0
        )

    def _spent(self) -> torch.Tensor:
        return self.length < SMALLEST * self.rules.full

    def _look(self, x: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Ranking (n,), its slope g (n, D) and the way up K g (n, D)."""
        point = x.clone().requires_grad_()
        value = self.dual(point.reshape(-1, *self.shape))
        (gradient,) = torch.autograd.grad(value.sum(), point)
        value, slope = value.detach(), gradient * self.rules.spread
        finite = torch.isfinite(value) & torch.isfinite(slope).all(1)
        if not bool(finite.all()):
            sample = int((~finite).nonzero()[0])
            raise NonFiniteScore(
                f"the predicted dual of sample {sample} or its gradient is not finite at step {step}: "
                f"{float(value[sample])}; check the network, or narrow the bounds"
            )
        return value, slope, self.rules.smoothed(slope)

    def _end(self, which: torch.Tensor, why: Stop) -> None:
        for place in (self.moving & which).nonzero().squeeze(1).tolist():
            self.stops[place] = why
        self.moving &= ~which


def _norm(slope: torch.Tensor) -> torch.Tensor:
    """Euclidean, (n,); scaled by the largest entry so that tiny slopes do not underflow."""
    largest = slope.abs().amax(1, keepdim=True)
    return (largest * (slope / largest.clamp(min=TINY)).square().sum(1, keepdim=True).sqrt()).squeeze(1)
