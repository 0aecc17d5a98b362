"""``objective="auto"``: the best objective for training a network, chosen by cross-validation on the labels.

The candidates are `ERM`, `PDCL` and `SmoothUnlabelled`, measured on the same held-out labels as learners are. ERM is
used unless another is better by more than a tie. Smoothness over the pool extends to a part of the distance between
neighbours (`RADIUS`); beyond that, it would merge samples with different labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from ally.learning.auto import AutoLearner
from ally.learning.candidates import Candidate, Size
from ally.learning.choice import Chosen, choose
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
"""Estimated seconds of one core that the choice may take."""
RADIUS, SOME = 0.25, 1000
"""As a share of the median distance to the nearest neighbour among this many samples of the pool."""


@dataclass(frozen=True)
class AutoObjective:
    """Attributes:
    among: the candidates, simplest first. The first trains every learner that is not a network.
    """

    among: tuple[Objective, ...] = (ERM(), PDCL(), SmoothUnlabelled())

    def start(self, problem: Problem) -> Session:
        """On its own, without held-out labels, it is the first candidate."""
        return self.among[0].start(problem)

    def choice(
        self,
        learner: Learner,
        examples: Examples,
        unlabelled: Unlabelled,
        streams: Streams,
        progress: Progress | None = None,
    ) -> Chosen | None:
        """None if there is nothing to choose: the learner is not a network, or there are too few labels."""
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
    """The objective with a radius from the pool, if its smoothness has none."""
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
    """The cost of a fit: a step over the pool takes three forward and two backward passes of a batch."""

    def plain(size: Size) -> float:
        return 0.05 + 100 * math.ceil(size.labels / 64) * (7e-4 + 1e-6 * size.features)

    if not isinstance(objective, OverPool):
        return plain
    return lambda size: plain(size) + objective.steps * (4e-3 + 1.5e-5 * size.features)


def objective_name(objective: Objective) -> str:
    """The name of its kind in `OBJECTIVES`."""
    kind = type(objective)
    return next((name for name, known in OBJECTIVES.items() if type(known) is kind), kind.__name__)


def objective_of(given: str | Objective) -> Objective:
    """Like `resolve_objective`, but also takes ``"auto"``."""
    return AutoObjective() if given == "auto" else resolve_objective(given)
