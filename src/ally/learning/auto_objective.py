"""``objective="auto"``: which objective a network is best trained by, chosen by cross-validation on the labels.

The candidates are `ERM`, `PDCL` and `SmoothUnlabelled`, each measured on the same held-out labels as learners are. ERM
stays unless another is better by more than a tie. Smoothness over the pool reaches as far as a part of the distance
between neighbours (`RADIUS`): further, it would join what labels keep apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from ally.learning.auto import AutoLearner, Chosen, choose
from ally.learning.candidates import Candidate, Size
from ally.learning.learner import Examples, Learner, Unlabelled
from ally.learning.network import Network
from ally.learning.objectives import (
    ERM,
    OBJECTIVES,
    PDCL,
    Objective,
    OverPool,
    Problem,
    Session,
    SmoothUnlabelled,
    resolve_objective,
)
from ally.learning.selfsupervised import Smoothness
from ally.rng import Streams
from ally.types import Progress

BUDGET = 600.0
"""Seconds of one core, by estimate, that choosing may take."""
RADIUS, SOME = 0.25, 1000
"""Of the median distance to the nearest of so many samples of the pool."""


@dataclass(frozen=True)
class AutoObjective:
    """Attributes:
    among: what is chosen from, the simplest first. The first trains every learner that is not a network.
    """

    among: tuple[Objective, ...] = (ERM(), PDCL(), SmoothUnlabelled())

    def start(self, problem: Problem) -> Session:
        """By itself, without labels held out, it is the first."""
        return self.among[0].start(problem)

    def choice(
        self,
        learner: Learner,
        examples: Examples,
        unlabelled: Unlabelled,
        streams: Streams,
        progress: Progress | None = None,
    ) -> Chosen | None:
        """None where there is nothing to choose: the learner is no network, or the labels are too few."""
        chosen = learner.chosen if isinstance(learner, AutoLearner) else None
        network = learner if chosen is None else chosen.candidate.learner
        if not isinstance(network, Network):
            return None
        radius = _radius(network, unlabelled, streams)
        slate = [
            Candidate(objective_name(one), network, _seconds(one), _reaching(one, radius))
            for one in self.among
            if not isinstance(one, OverPool) or len(unlabelled.rows)
        ]
        if len(slate) == 1:
            return Chosen(slate[0], slate[0].name, len(examples))
        return choose(slate, examples, BUDGET, streams, progress, unlabelled=unlabelled)


def _reaching(objective: Objective, radius: float) -> Objective:
    """With a radius from the pool, where smoothness was given none."""
    if isinstance(objective, SmoothUnlabelled) and objective.secondary_loss == Smoothness() and radius > 0:
        return replace(objective, secondary_loss=Smoothness(radius=radius))
    return objective


def _radius(network: Network, unlabelled: Unlabelled, streams: Streams) -> float:
    rows = unlabelled.rows
    if len(rows) < 2:
        return 0.0
    some = np.sort(streams.numpy("neighbours").permutation(len(rows))[:SOME])
    points = network.points(unlabelled.source, rows[some])
    distances = torch.cdist(points, points).fill_diagonal_(math.inf)
    return RADIUS * float(distances.min(dim=1).values.median())


def _seconds(objective: Objective) -> Callable[[Size], float]:
    """Of a fit: a step over the pool takes a batch of it forward three times and back twice."""

    def plain(size: Size) -> float:
        return 0.05 + 100 * math.ceil(size.labels / 64) * (7e-4 + 1e-6 * size.features)

    if not isinstance(objective, OverPool):
        return plain
    return lambda size: plain(size) + objective.steps * (4e-3 + 1.5e-5 * size.features)


def objective_name(objective: Objective) -> str:
    """What `OBJECTIVES` calls its kind."""
    kind = type(objective)
    return next((name for name, known in OBJECTIVES.items() if type(known) is kind), kind.__name__)


def objective_of(given: str | Objective) -> Objective:
    """As `resolve_objective`, and ``"auto"``."""
    return AutoObjective() if given == "auto" else resolve_objective(given)
