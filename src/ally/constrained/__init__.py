"""The mathematics of constrained learning: constraint, multipliers, Lagrangian, step schedules."""

from ally.constrained.constraint import Eps, Slacks, resolve_eps
from ally.constrained.lagrangian import lagrangian
from ally.constrained.multipliers import Multipliers
from ally.constrained.schedules import Geometric, Power

__all__ = ["Eps", "Geometric", "Multipliers", "Power", "Slacks", "lagrangian", "resolve_eps"]
