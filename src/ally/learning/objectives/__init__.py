"""What a learner minimises. An objective is a frozen description; its session holds the state of one fit."""

from __future__ import annotations

from ally.errors import InputError
from ally.learning.objectives.base import Batch, Objective, Problem, Session, UnlabelledBatch
from ally.learning.objectives.constrained import PDCL, Feasibility, Resilient
from ally.learning.objectives.erm import ERM
from ally.learning.objectives.learning_loss import LearningLoss
from ally.learning.objectives.regularizers import HalfSquaredNorm
from ally.learning.objectives.unlabelled import OverPool, PDCLUnlabelled, SmoothUnlabelled
from ally.learning.objectives.vaal import VAAL
from ally.learning.objectives.waal import WAAL
from ally.registry import Registry

OBJECTIVES: Registry[Objective] = Registry(
    "objective",
    {
        "erm": ERM(),
        "pdcl": PDCL(),
        "smooth-unlabelled": SmoothUnlabelled(),
        "pdcl-unlabelled": PDCLUnlabelled(),
        "feasibility": Feasibility(),
        "resilient": Resilient(),
        "accumulated-loss": PDCL(eps=0.01, weighted=False),
        "learning-loss": LearningLoss(),
        "vaal": VAAL(),
        "waal": WAAL(),
    },
)


def resolve_objective(objective: str | Objective) -> Objective:
    """The objective with this name, or the objective itself."""
    if isinstance(objective, str):
        return OBJECTIVES[objective]
    if isinstance(objective, Objective) and not isinstance(objective, type):
        return objective
    raise InputError(
        f"objective is a {type(objective).__name__}; pass a name ({', '.join(OBJECTIVES)}) or an objective such as "
        "PDCL(eps=0.2)"
    )


__all__ = [
    "ERM",
    "OBJECTIVES",
    "PDCL",
    "VAAL",
    "WAAL",
    "Batch",
    "Feasibility",
    "HalfSquaredNorm",
    "LearningLoss",
    "Objective",
    "OverPool",
    "PDCLUnlabelled",
    "Problem",
    "Resilient",
    "Session",
    "SmoothUnlabelled",
    "UnlabelledBatch",
    "resolve_objective",
]
