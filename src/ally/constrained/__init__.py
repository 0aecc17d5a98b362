"""The mathematics of constrained learning: constraint, multipliers, Lagrangian, step schedules."""

from ally.constrained.constraint import AUTO_FACTOR, Eps, Slacks, find_residuals, resolve_eps
from ally.constrained.lagrangian import lagrangian
from ally.constrained.multipliers import Multipliers
from ally.constrained.passes import PassMultipliers
from ally.constrained.schedules import Geometric, Power
from ally.constrained.violations import (
    AbsoluteError,
    ClassConstraint,
    CrossEntropy,
    MarginViolation,
    NumberConstraint,
    ProbabilityShortfall,
    SquaredError,
    split_top,
)

__all__ = [
    "AUTO_FACTOR",
    "AbsoluteError",
    "ClassConstraint",
    "CrossEntropy",
    "Eps",
    "Geometric",
    "MarginViolation",
    "Multipliers",
    "NumberConstraint",
    "PassMultipliers",
    "Power",
    "ProbabilityShortfall",
    "Slacks",
    "SquaredError",
    "find_residuals",
    "lagrangian",
    "resolve_eps",
    "split_top",
]
