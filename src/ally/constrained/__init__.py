"""The mathematics of constrained learning: constraint, multipliers, Lagrangian, step schedules."""

from ally.constrained.constraint import AUTO_FACTOR, Eps, Slacks, find_residuals, resolve_eps
from ally.constrained.lagrangian import lagrangian
from ally.constrained.multipliers import Multipliers
from ally.constrained.passes import PassMultipliers
from ally.constrained.schedules import Geometric, Power

__all__ = [
    "AUTO_FACTOR",
    "Eps",
    "Geometric",
    "Multipliers",
    "PassMultipliers",
    "Power",
    "Slacks",
    "find_residuals",
    "lagrangian",
    "resolve_eps",
]
