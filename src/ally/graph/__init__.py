"""The graph of nearest neighbours of many points, and labels that spread along it.

Points are rows of numbers, (n, d) in single precision. `NearestPoints` finds exact neighbours, `NeighbourGraph` links
each point with its own, and `spread` passes labels along the links. Nothing here knows about samples or learners.
"""

from ally.graph.nearest import NearestPoints, Neighbours
from ally.graph.neighbour_graph import NeighbourGraph, interpolate
from ally.graph.spreading import spread

__all__ = ["NearestPoints", "NeighbourGraph", "Neighbours", "interpolate", "spread"]
