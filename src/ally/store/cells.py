"""The kinds of values in a SQLite file, whose columns can hold anything: looked at in one pass over each table.

With the tables those of our migrations, this makes a cell what the code takes it for.
"""

from __future__ import annotations

import sys

from sqlalchemy import Boolean, Column, Connection, Double, LargeBinary, String, select, text

from ally.store.recorded import MOST_CHARACTERS
from ally.store.schema import metadata
from ally.store.validation import LONGEST_KEY, LONGEST_NAME
from ally.types import LONGEST_ID

TIMES = ("at", "created", "until")
LAST_SECOND = 253_402_300_799.0
"""The last that a time can be written for."""
LENGTHS = {"id": LONGEST_ID, "annotator": LONGEST_NAME, "key": LONGEST_KEY, "hash": LONGEST_NAME}


def find_odd_cells(connection: Connection) -> list[str]:
    """The columns with values of another type, out of range, too long, or with a NUL character."""
    found = []
    for table in metadata.sorted_tables:
        odd = ", ".join(f"coalesce(sum({_is_odd(column)}), 0)" for column in table.columns)
        counts = connection.execute(text(f"SELECT {odd} FROM {table.name}")).one()
        columns = zip(table.columns, counts, strict=True)
        found += [f"{n} values of {table.name}.{column.name} are none that ally writes" for column, n in columns if n]
        # Reading a text that is no valid Unicode is an error.
        texts = [column for column in table.columns if isinstance(column.type, String)]
        for _ in connection.execute(select(*texts)) if texts else ():
            pass
    return found


def _is_odd(column: Column[object]) -> str:
    name = f'"{column.name}"'
    return f"{f'{name} IS NOT NULL AND ' if column.nullable else ''}NOT ({_fits(column, name)})"


def _fits(column: Column[object], name: str) -> str:
    kind = column.type
    if isinstance(kind, LargeBinary):
        return f"typeof({name}) = 'blob'"
    if isinstance(kind, Boolean):
        return f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
    if isinstance(kind, String):
        most = kind.length or LENGTHS.get(column.name, MOST_CHARACTERS)
        return f"typeof({name}) = 'text' AND length({name}) <= {most} AND instr({name}, char(0)) = 0"
    if isinstance(kind, Double):
        first, last = (0.0, LAST_SECOND) if column.name in TIMES else (-sys.float_info.max, sys.float_info.max)
        return f"typeof({name}) IN ('real', 'integer') AND {name} BETWEEN {first!r} AND {last!r}"
    return f"typeof({name}) = 'integer' AND {name} >= 0"
