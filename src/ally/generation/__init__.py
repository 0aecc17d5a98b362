"""The generative mode: samples moved to a higher predicted dual by gradient ascent on the sample itself (paper, section
4.4)."""

from ally.generation.ascent import ascend
from ally.generation.bounds import Bounds, bounds_of
from ally.generation.dual import DualOf
from ally.generation.figure import draw
from ally.generation.learn import Learned, learn
from ally.generation.progression import Progression

__all__ = ["Bounds", "DualOf", "Learned", "Progression", "ascend", "bounds_of", "draw", "learn"]
