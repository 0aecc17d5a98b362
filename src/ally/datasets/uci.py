"""Regression sets of the UCI repository as ``uci/NAME.csv.gz``, the last column called target."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ally.datasets.dataset import Parts
from ally.datasets.places import locate
from ally.datasets.splits import holdout
from ally.errors import DataError
from ally.types import AnyArray


def read_uci(folder: Path, name: str, rows: int) -> Parts:
    """All columns but the last as features; one row in five, drawn once, as the test set."""
    import pandas as pd

    path = locate(folder, f"uci/{name}.csv.gz", f"uci/{name}.csv")
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read as CSV ({error}); put the file there again") from error
    if not len(table.columns) or table.columns[-1] != "target" or len(table) != rows:
        raise DataError(
            f"{path} has {len(table)} rows and the last column {table.columns[-1]!r}; {rows} rows and 'target' are "
            "needed"
        )
    odd = next(
        (
            column
            for column in table.columns
            if table[column].dtype.kind not in "fiu" or not np.isfinite(table[column]).all()
        ),
        None,
    )
    if odd is not None:
        raise DataError(
            f"column {odd!r} of {path} holds something that is not a finite number; put the file there again"
        )
    values = table.to_numpy(np.float64)
    pool, test = holdout(len(values))
    copies = count_copies(values[pool, :-1], values[test, :-1])
    notes = (f"{copies} of {len(test)} test rows have the features of a pool row",) if copies else ()
    return Parts(values[pool, :-1], values[pool, -1], values[test, :-1], values[test, -1], notes)


def count_copies(pool: AnyArray, test: AnyArray) -> int:
    """How many rows of `test` (m, d) are also rows of `pool` (n, d)."""
    known = {row.tobytes() for row in np.ascontiguousarray(pool)}
    return sum(row.tobytes() in known for row in np.ascontiguousarray(test))
