"""Tables: rows one at a time and again by their place, from CSV, JSON lines, Parquet, plain text and frames; what is
learned from their columns; rows as samples."""

from __future__ import annotations

from pathlib import Path

from ally.errors import DataError
from ally.sources.rows.base import BadRow, Row, Rows
from ally.sources.rows.delimited import DelimitedRows
from ally.sources.rows.lines import JsonRows, Lines, TextRows
from ally.sources.rows.parquet import ParquetRows

__all__ = ["TABLES", "BadRow", "Row", "Rows", "open_rows"]

TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")


def open_rows(path: Path, encoding: str = "utf-8") -> Rows:
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        return DelimitedRows(path, "\t" if kind == ".tsv" else separator(path, encoding), encoding)
    if kind == ".parquet":
        return ParquetRows(path)
    if kind in (".jsonl", ".ndjson"):
        return JsonRows(path, encoding)
    if kind == ".txt":
        return TextRows(path, encoding)
    raise DataError(
        f"{path} has the ending {kind or '(none)'!r}; use {', '.join(TABLES)}, or .txt with one text per line"
    )


def separator(path: Path, encoding: str) -> str:
    """A comma, or the semicolon that spreadsheets write where a comma is part of numbers, if the header has no
    other."""
    lines = Lines(path, encoding)
    with lines.open() as stream:
        first = next(lines.read(stream), None)
    header = "" if first is None or first.text is None else first.text
    return ";" if ";" in header and "," not in header else ","
