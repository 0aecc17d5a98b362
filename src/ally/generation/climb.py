r"""Samples on their way up.

The predicted dual has creases, where two classes are equally likely or a unit switches on. There the gradient of one side leads
across, and plain gradient steps zigzag without getting on. A step that does not raise the dual is therefore not taken but learnt from: the
heading becomes the shortest convex combination of the planes met on both sides,

.. math:: h = a + t (b - a),\quad t = \arg\min_{0 \le t \le 1} \tfrac{\tau}{2} \lVert a + t (b - a) \rVert^2 + t (e_b - e_a)

with slopes a (so far) and b (beyond), and e how far each plane lies above the sample; along h both rise. τ is the length of the
step over ‖a‖. The next step is half as long, and no longer than to where the planes cross; a step that is taken doubles it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ally.errors import NonFiniteScore
from ally.generation.dual import DualOf
from ally.generation.progression import Moment, Stop

SMALLEST = 2.0**-16
"""A step shorter than this times the full one counts as none."""
ENOUGH = 0.01
"""A step is taken if it gains this share of what the slope promises."""
TINY = torch.finfo(torch.float64).tiny


@dataclass(eq=False)
class Climb:
    """n samples `x` (n, D), flat, within `low` and `high` (D,); slopes are in units of `spread` (D,)."""

    dual: DualOf
    shape: tuple[int, ...]
    x: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    spread: torch.Tensor
    full: float
    """Euclidean length of a full step, in units of the spread."""
    top: float
    """No step leads above this log(1 + λ)."""
    stops: list[Stop | None] = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.x)
        self.stops = [None] * n
        self.moving = torch.ones(n, dtype=torch.bool)
        self.length = torch.full((n,), self.full, dtype=torch.float64)
        self.reach = self.length
        self.value, self.slope = self._look(self.x, 0)
        self.heading, self.above = self.slope, torch.zeros(n, dtype=torch.float64)

    def step(self, number: int) -> None:
        """One step of every sample that still moves."""
        self._stop(self.value >= self.top, "ceiling")
        self._stop(_norm(self.slope) == 0, "flat")
        self._stop(_norm(self._inward(self.slope)) == 0, "corner")
        free = self._inward(self.heading)
        self._stop(_norm(free) == 0, "peak")
        if not bool(self.moving.any()):
            return
        stride = (self.reach / _norm(free).clamp(min=TINY))[:, None] * free
        there = torch.minimum(torch.maximum(self.x + self.spread * stride, self.low), self.high)
        value, slope = self._look(there, number)
        moved = (there - self.x) / self.spread
        enough = value - self.value >= ENOUGH * (self.slope * moved).sum(1).clamp(min=TINY)
        # Not lower and still uphill: so it is on the plain of very sure predictions, and not where a step has crossed a peak.
        onward = (value >= self.value) & ((slope * moved).sum(1) > 0)
        taken = self.moving & (enough | onward) & (value <= self.top)
        self._turn(~taken & (value <= self.top), value, slope, moved)
        self.length = torch.where(taken, (2 * self.length).clamp(max=self.full), self.length / 2)
        self.reach = torch.where(taken, self.length, torch.minimum(self.reach, self.length))
        wide = taken[:, None]
        self.x, self.slope = torch.where(wide, there, self.x), torch.where(wide, slope, self.slope)
        self.value, self.heading = torch.where(taken, value, self.value), torch.where(wide, slope, self.heading)
        self.above = torch.where(taken, 0.0, self.above)
        spent = self.length < SMALLEST * self.full
        self._stop(spent & (value > self.top), "ceiling")
        self._stop(spent, "peak")

    def moment(self) -> Moment:
        """Samples, predicted λ, predictions and probabilities now."""
        samples = self.x.reshape(-1, *self.shape)
        with torch.no_grad():
            seen = self.dual.view(samples)
        probabilities = None if seen.probabilities is None else seen.probabilities.numpy()
        return Moment(samples.numpy(), self.dual.head.duals(seen).numpy(), seen.predictions.numpy(), probabilities)

    def _turn(self, refused: torch.Tensor, value: torch.Tensor, slope: torch.Tensor, moved: torch.Tensor) -> None:
        """Combines the heading with the plane met at a place that was refused."""
        beyond = (value - (slope * moved).sum(1) - self.value).clamp(min=0.0)
        pace = self.length / _norm(self.heading).clamp(min=TINY)
        across, gap = slope - self.heading, beyond - self.above
        share = ((-(self.heading * across).sum(1) - gap / pace) / across.square().sum(1).clamp(min=TINY)).clamp(0.0, 1.0)
        share = torch.where(refused, share, 0.0)
        heading = self.heading + share[:, None] * across
        unit = heading / _norm(heading).clamp(min=TINY)[:, None]
        falls, rises = (slope * unit).sum(1), (self.heading * unit).sum(1)
        crossing = gap.clamp(min=0.0) / (rises - falls).clamp(min=TINY)
        self.reach = torch.where((share > 0) & (falls < 0), crossing, self.length)
        self.heading, self.above = heading, self.above + share * gap

    def _inward(self, slope: torch.Tensor) -> torch.Tensor:
        """Without the features that are at their bound and would leave it."""
        return slope.masked_fill(((self.x >= self.high) & (slope > 0)) | ((self.x <= self.low) & (slope < 0)), 0.0)

    def _look(self, x: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Ranking (n,) and its slope (n, D)."""
        point = x.clone().requires_grad_()
        value = self.dual(point.reshape(-1, *self.shape))
        (gradient,) = torch.autograd.grad(value.sum(), point)
        value, slope = value.detach(), gradient * self.spread
        finite = torch.isfinite(value) & torch.isfinite(slope).all(1)
        if not bool(finite.all()):
            sample = int((~finite).nonzero()[0])
            raise NonFiniteScore(
                f"the predicted dual of sample {sample} or its gradient is not finite at step {step}: {float(value[sample])}; "
                "check the network, or narrow the bounds"
            )
        return value, slope

    def _stop(self, which: torch.Tensor, why: Stop) -> None:
        for place in (self.moving & which).nonzero().squeeze(1).tolist():
            self.stops[place] = why
        self.moving &= ~which


def _norm(slope: torch.Tensor) -> torch.Tensor:
    """Euclidean, (n,); scaled by the largest entry so that tiny slopes do not underflow."""
    largest = slope.abs().amax(1, keepdim=True)
    return (largest * (slope / largest.clamp(min=TINY)).square().sum(1, keepdim=True).sqrt()).squeeze(1)
