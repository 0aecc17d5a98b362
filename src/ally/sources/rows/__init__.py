"""Rows of tables, one at a time and again by their place: CSV, JSON lines, Parquet, plain text, frames in memory."""

from ally.sources.rows.base import BadRow, Row, Rows
from ally.sources.rows.opening import TABLES, open_rows

__all__ = ["TABLES", "BadRow", "Row", "Rows", "open_rows"]
