"""Exact nearest neighbours, and what else is computed from pairs of rows.

Rows are products of factors, each (n, d_f); most have one. Matrix products in single precision bound the distances from
below, and the few pairs that matter are computed in double precision (`screening`): the result is that of one loop over
all pairs, for any number of threads and however many rows are asked about at once. Ties go to the lowest number.
"""

from ally.neighbours.nearest import Neighbours, find_nearest
from ally.neighbours.screening import ArrayRows, FactorRows

__all__ = ["ArrayRows", "FactorRows", "Neighbours", "find_nearest"]
