"""Simulated campaigns: a strategy asks, an oracle answers, a held-out set measures."""

from ally.experiment.run import run_cells
from ally.experiment.simulate import COLUMNS, Cell, Record, Trial, simulate

__all__ = ["COLUMNS", "Cell", "Record", "Trial", "run_cells", "simulate"]
