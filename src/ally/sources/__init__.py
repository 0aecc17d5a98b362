"""Samples by row number, read in chunks: arrays, memory maps, sparse matrices, tables, torch data sets, files."""

from ally.sources.arrays import as_source
from ally.sources.base import Source
from ally.sources.blocks import BLOCK, blocks, chunks
from ally.sources.scaling import Standardized, standardize

__all__ = ["BLOCK", "Source", "Standardized", "as_source", "blocks", "chunks", "standardize"]
