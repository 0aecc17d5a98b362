"""Tables: rows one at a time and again by their place, from CSV, JSON, spreadsheets, Parquet, plain text, frames and
lists; what is learned from their columns; rows as samples.

`open_rows` is the one reader of table files: `ally new`, `query`, `bench`, `predict`, `import` and `tell` all use it.
"""

from __future__ import annotations

from pathlib import Path

from ally.data.tables.base import BadRow, Row, Rows
from ally.data.tables.delimited import DelimitedRows
from ally.data.tables.in_memory import HeldRows, json_rows, rows_of_dictionaries, sheet_rows
from ally.data.tables.lines import JsonRows, TextRows
from ally.data.tables.parquet import ParquetRows
from ally.errors import DataError

__all__ = ["TABLES", "BadRow", "HeldRows", "Row", "Rows", "is_table", "open_rows", "rows_of_dictionaries"]

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".xlsx", ".parquet", ".jsonl", ".ndjson", ".json")


def is_table(path: Path) -> bool:
    return path.name.lower().endswith(TABLES)


def open_rows(path: Path, encoding: str = "utf-8", *, header: bool = True, decimal: str | None = None) -> Rows:
    """The rows of a table file by its ending. `header`: whether the first line of a .csv, .tsv or .xlsx file names the
    columns; `decimal`: the mark of decimal numbers in text, found out if it is None."""
    kind = path.suffix.lower()
    if path.name.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        return DelimitedRows(path, encoding, header=header, decimal=decimal)
    if kind == ".xlsx":
        return sheet_rows(path, header=header)
    if kind == ".parquet":
        return ParquetRows(path)
    if kind in (".jsonl", ".ndjson"):
        return JsonRows(path, encoding)
    if kind == ".json":
        return json_rows(path, encoding)
    if kind == ".txt":
        return TextRows(path, encoding)
    raise DataError(
        f"{path} has the ending {kind or '(none)'!r}; use {', '.join(TABLES)}, or .txt with one text per line"
    )
