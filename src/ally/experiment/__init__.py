"""Simulated campaigns: a strategy asks, an oracle answers, a held-out set measures."""

from ally.data.catalogue.own_data import DataOptions
from ally.experiment.bench import bench
from ally.experiment.cell import COLUMNS, Cell, Record, Round
from ally.experiment.folder import Grid, run
from ally.experiment.run import CellsFailed, collect, run_cells, run_grid
from ally.experiment.simulate import simulate
from ally.experiment.trial import Copies, Trial

__all__ = [
    "COLUMNS",
    "Cell",
    "CellsFailed",
    "Copies",
    "DataOptions",
    "Grid",
    "Record",
    "Round",
    "Trial",
    "bench",
    "collect",
    "run",
    "run_cells",
    "run_grid",
    "simulate",
]
