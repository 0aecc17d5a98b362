"""Samples by row number, read in chunks: arrays, memory maps, sparse matrices, tables, torch data sets, files."""

from ally.sources.arrays import as_source
from ally.sources.base import Source
from ally.sources.blocks import BLOCK, blocks, chunks
from ally.sources.scaling import Checked, Scaler, fit_scaler

__all__ = ["BLOCK", "Checked", "Scaler", "Source", "as_source", "blocks", "chunks", "fit_scaler"]
