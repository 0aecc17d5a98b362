"""What no statement on a campaign's file may do, whatever the file holds.

The schema of a file is compared with ours before anything is read, so no statement of somebody else runs. This is the
second line: should one slip through, it reaches nothing outside the file.
"""

from __future__ import annotations

import sqlite3

_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 20,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 10_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""Above what our own statements need; the size of a value stays as it is, since a model is one."""

_ACTS = {
    sqlite3.SQLITE_ATTACH,
    sqlite3.SQLITE_DETACH,
    sqlite3.SQLITE_CREATE_TRIGGER,
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_CREATE_TEMP_VIEW,
    sqlite3.SQLITE_CREATE_VTABLE,
    sqlite3.SQLITE_DROP_VTABLE,
}
_PRAGMAS = {"writable_schema", "trusted_schema", "temp_store_directory", "data_store_directory"}
_FUNCTIONS = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}


def guard_connection(connection: sqlite3.Connection) -> None:
    """Sets the limits, and has every statement looked at when it is prepared."""
    for limit, most in _LIMITS.items():
        connection.setlimit(limit, most)
    connection.set_authorizer(_allow)


def _allow(act: int, first: str | None, second: str | None, _database: str | None, inside: str | None) -> int:
    """`inside` names the view or trigger that a statement runs in: none of ours does."""
    refused = (
        inside is not None
        or act in _ACTS
        or (act == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS)
        or (act == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
    )
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK
