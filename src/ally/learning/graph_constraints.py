"""Smoothness over the pool's graph as constraints: `PDCLUnlabelled` for the graph learner, solved exactly.

Every point of the graph has a constraint, labelled or not, and so a dual (`ally.constrained.smoothness`). Neighbours,
weights, and whether classes are balanced are those that label spreading chose for the same labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch

from ally.constrained import AUTO_FACTOR, Slacks
from ally.constrained.convex import UNBOUNDED, Constraints
from ally.constrained.diagnostics import STILL, find_ties
from ally.constrained.smoothness import SmoothProblem, SmoothValues, solve_smooth
from ally.data import Source, blocks
from ally.graph import interpolate
from ally.learning.graph_settings import (
    FEWEST,
    TEMPERATURES,
    ChosenSettings,
    GraphSettings,
    SpreadLabels,
    balance,
    predict_labels,
)
from ally.learning.learner import FitReport
from ally.learning.objectives import PDCLUnlabelled
from ally.learning.objectives.unlabelled import LEAST_EPS
from ally.learning.pool_graph import PoolGraph
from ally.neighbours import ArrayRows, find_nearest
from ally.types import AnyArray, FloatArray, IntArray

RIDGE = 1.0
"""All points together are pulled towards no label as strongly as to their labels. With less, most points lean to the
label that is best connected."""
TOLERANCE = 1e-6
SAME = 1e-9
"""Points closer than this, in widths of the graph, are one."""
USED = ("eps", "dual_cap", "price")
"""Settings of the objective that mean something where multipliers are solved for exactly."""


def find_unused(objective: PDCLUnlabelled) -> str | None:
    """Why a graph cannot be trained by the objective: a setting that would do nothing."""
    usual = PDCLUnlabelled()
    for item in fields(objective):
        value = getattr(objective, item.name)
        if item.name not in USED and value != getattr(usual, item.name):
            return (
                f"on a graph the smoothness constraints are between neighbours and their duals are solved for exactly, "
                f"so {item.name}={value!r} of {type(objective).__name__} has no meaning: leave it out, or use "
                "model='mlp'"
            )
    return None


class ConstrainedMasses(NamedTuple):
    """What a fit under constraints predicts by."""

    masses: FloatArray
    settings: GraphSettings
    said: FloatArray
    """What each label would be without itself, with the multipliers held."""


@dataclass(frozen=True, eq=False)
class GraphConstraints:
    """The constrained problem of some labels on the graph of a pool."""

    pool: PoolGraph
    settings: GraphSettings
    points: AnyArray
    """(m, d) of the labels."""
    labels: SpreadLabels
    objective: PDCLUnlabelled

    def find_eps(self, plain: FloatArray) -> float:
        """ε as a number; ``"auto"`` from the masses of plain label spreading."""
        if self.objective.eps != "auto":
            return float(self.objective.eps)
        said = predict_labels(plain, self.settings.temperature, self.labels.shares)
        return max(LEAST_EPS, AUTO_FACTOR * float(self.build_problem().measure_smoothness(said).mean()))

    def solve(self, eps: float) -> tuple[SmoothProblem, SmoothValues]:
        cap, price = self.objective.dual_cap, self.objective.price
        problem = self.build_problem()
        constraints = Constraints(
            np.full(len(problem), eps), UNBOUNDED if cap is None else cap, slope=math.inf if price is None else price
        )
        return problem, solve_smooth(problem, constraints, TOLERANCE)

    def read(self, problem: SmoothProblem, found: SmoothValues, some: IntArray) -> ConstrainedMasses:
        """Masses and settings to predict by; `some` labels choose the temperature.

        The pull towards no label draws all values to 0, as it draws those of constant labels: predictions are the ratio
        of both, which for classes is the share of a class.
        """
        settings, shares, targets = self.settings, self.labels.shares, problem.targets
        if not self.labels.classes:
            problem = replace(problem, targets=np.column_stack([targets, np.ones(len(targets))]))
            masses = _bound(problem.solve_held(found.duals), targets)
            without = _bound(problem.predict_without(found.duals, some), targets)
        else:
            # Conjugate gradients may leave a membership of 0 a little below it.
            masses = np.maximum(found.values, 0.0)
            without = np.maximum(problem.predict_without(found.duals, some), 0.0)
            if settings.balanced:
                everywhere = masses.sum(axis=0)
                masses, without = (balance(values, everywhere, self.labels) for values in (masses, without))
            settings = _choose_temperature(settings, without, self.labels.at(some))
        said: FloatArray = problem.placed @ masses
        said[some] = without
        return ConstrainedMasses(masses, settings, predict_labels(said, settings.temperature, shares))

    def build_problem(self) -> SmoothProblem:
        """Without the constraints."""
        values = self.labels.values
        weights = values.sum(axis=1) if self.labels.classes else values[:, 1]
        targets = (values if self.labels.classes else values[:, :1]) / weights[:, None]
        graph = self.pool.build()
        k, share = self.settings.k, self.settings.share
        placed = graph.interpolate(self.points, k, share)
        return SmoothProblem(graph.links(k, share), placed, targets, weights, RIDGE)


def _bound(masses: FloatArray, targets: FloatArray) -> FloatArray:
    """(n, 2) of numbers and ones, whose ratio is a mean of targets; conjugate gradients may miss that where both are
    near 0."""
    ones = np.maximum(masses[:, 1], 0.0)
    return np.column_stack([np.clip(masses[:, 0], targets.min() * ones, targets.max() * ones), ones])


def _choose_temperature(settings: GraphSettings, masses: FloatArray, labels: SpreadLabels) -> GraphSettings:
    """1, unless another is clearly better."""
    usual, tried = settings._replace(temperature=1.0), []
    for temperature in (1.0,) if len(masses) < FEWEST else TEMPERATURES:
        said = predict_labels(masses, temperature, labels.shares)
        truth = labels.values / labels.values.sum(axis=1, keepdims=True)
        errors = np.square(said - truth).sum(axis=1)
        tried.append(ChosenSettings(settings._replace(temperature=temperature), said, errors))
    best = min(tried, key=lambda one: float(one.errors.mean()))
    (plain,) = (one for one in tried if one.settings == usual)
    return best.settings if best.is_clearly_better(plain) else usual


def read_duals(
    pool: PoolGraph, settings: GraphSettings, duals: FloatArray, source: Source, rows: IntArray
) -> tuple[torch.Tensor, int]:
    """λ (len(rows),) of samples, and how many of them are not in the graph: those get the mean of their neighbours."""
    graph = pool.build()
    width = graph.width(settings.k, settings.share)
    numbers = {point.tobytes(): number for number, point in enumerate(graph.points)}
    found, outside = np.empty(len(rows)), 0
    for block in blocks(len(rows)):
        points = pool.space.read(source, rows[block]) + np.float32(0.0)
        known = np.asarray([numbers.get(point.tobytes(), -1) for point in points], dtype=np.int64)
        rest = np.flatnonzero(known < 0)
        if len(rest):
            # The same sample read with other ones may differ in the last digit.
            nearest = find_nearest(ArrayRows(points[rest]), ArrayRows(graph.points))
            same = nearest.squared[:, 0] <= SAME * width
            known[rest[same]] = nearest.numbers[same, 0]
            rest = rest[~same]
        here = duals[known]
        if len(rest):
            here[rest] = interpolate(graph.points, points[rest], settings.k, width) @ duals
            outside += len(rest)
        found[block] = here
    return torch.from_numpy(found.astype(np.float32)), outside


def describe(report: FitReport, found: SmoothValues, objective: PDCLUnlabelled, eps: float, outside: int) -> FitReport:
    """The report with what the duals say."""
    notes: tuple[str, ...] = ()
    if found.residual > STILL:
        notes = (f"graph: the duals are {found.residual:.2g} from their optimum; raise eps, or set price=",)
    if outside:
        notes += (f"graph: {outside} samples are not in the graph, and their duals are those of their neighbours",)
    cap = objective.dual_cap
    return replace(
        report,
        positive_duals=float((found.duals > 0).mean()),
        capped_duals=None if cap is None else float((found.duals >= cap).mean()),
        slacks=Slacks.of(torch.from_numpy(found.smoothness - eps)),
        dual_residual=found.residual,
        eps=eps,
        notes=(*report.notes, *notes, *find_ties(found.duals)),
    )
