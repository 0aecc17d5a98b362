"""The graph of nearest neighbours of many points, and labels that spread along it.

Points are rows of numbers, (n, d) in single precision. `NeighbourGraph` links each point with its nearest neighbours
(`ally.neighbours`), and `spread` passes labels along the links. Nothing here knows about samples or learners.
"""

from ally.graph.neighbour_graph import NeighbourGraph, interpolate, sort_points
from ally.graph.spreading import spread

__all__ = ["NeighbourGraph", "interpolate", "sort_points", "spread"]
