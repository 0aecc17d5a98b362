"""Tables of the catalogue: small sets of scikit-learn, regression sets of UCI, and Parkinsons Telemonitoring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ally.data.catalogue.dataset import Parts
from ally.data.catalogue.places import locate
from ally.data.catalogue.splits import holdout, holdout_groups
from ally.errors import DataError
from ally.types import AnyArray

if TYPE_CHECKING:
    import pandas as pd

SUBJECT = "subject#"
TARGETS = ("motor_UPDRS", "total_UPDRS")
COLUMNS = 22


def read_builtin(folder: Path, name: str) -> Parts:
    """Features (n, d) float64; one row in five (of every class), drawn once, is the test set. `folder` is not
    needed."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    regression = name == "diabetes"
    y = y.astype(np.float64 if regression else np.int64)
    pool, test = holdout(len(X), None if regression else y)
    return Parts(X[pool], y[pool], X[test], y[test])


def read_digit_images(folder: Path) -> Parts:
    """The rows of digits as images (n, 1, 8, 8) uint8, from 0 to 16."""
    parts = read_builtin(folder, "digits")
    pool, test = (X.reshape(-1, 1, 8, 8).astype(np.uint8) for X in (parts.pool, parts.test))
    return parts._replace(pool=pool, test=test)


def read_uci(folder: Path, name: str, rows: int) -> Parts:
    """``uci/NAME.csv.gz``: the last column, called target, is the target and the others are features; one row in five,
    drawn once, is the test set."""
    path = locate(folder, f"uci/{name}.csv.gz", f"uci/{name}.csv")
    again = "put the file there again"
    table = _read_csv(path, again)
    if not len(table.columns) or table.columns[-1] != "target" or len(table) != rows:
        raise DataError(
            f"{path} has {len(table)} rows and the last column {table.columns[-1]!r}; {rows} rows and 'target' are "
            "needed"
        )
    _ensure_finite(table, path, again)
    values = table.to_numpy(np.float64)
    pool, test = holdout(len(values))
    copies = count_copies(values[pool, :-1], values[test, :-1])
    notes = (f"{copies} of {len(test)} test rows have the features of a pool row",) if copies else ()
    return Parts(values[pool, :-1], values[pool, -1], values[test, :-1], values[test, -1], notes)


def count_copies(pool: AnyArray, test: AnyArray) -> int:
    """How many rows of `test` (m, d) are also rows of `pool` (n, d)."""
    known = {row.tobytes() for row in np.ascontiguousarray(pool)}
    return sum(row.tobytes() in known for row in np.ascontiguousarray(test))


def read_parkinsons(folder: Path, target: Literal["motor", "total"], by_subject: bool) -> Parts:
    """5875 voice recordings of 42 people with two clinical scores. The 19 features are age, sex, time of the test and
    16 measures of the voice; the scores and the subject number are not among them."""
    path = locate(folder, "parkinsons/parkinsons_updrs.data")
    table = _read_csv(path, "fetch it again")
    if len(table.columns) != COLUMNS or not {SUBJECT, *TARGETS} <= set(table.columns):
        needed = ", ".join((SUBJECT, *TARGETS))
        raise DataError(
            f"{path} has {len(table.columns)} columns; {COLUMNS} are needed, {needed} among them: fetch it again"
        )
    _ensure_finite(table, path, "fetch it again")
    features = table.drop(columns=[SUBJECT, *TARGETS])
    X, y = features.to_numpy(np.float64), table[f"{target}_UPDRS"].to_numpy(np.float64)
    subjects = table[SUBJECT].to_numpy()
    pool, test = holdout_groups(subjects) if by_subject else holdout(len(X))
    if by_subject:
        note = (
            f"{len(np.unique(subjects[test]))} of {len(np.unique(subjects))} people are in the test set, "
            "none of them in the pool"
        )
    else:
        note = (
            "a random split: recordings of the same people are in the pool and in the test set, so errors "
            "are lower than for new people"
        )
    return Parts(X[pool], y[pool], X[test], y[test], (note,))


def _read_csv(path: Path, again: str) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read as CSV ({error}); {again}") from error


def _ensure_finite(table: pd.DataFrame, path: Path, again: str) -> None:
    for name in table.columns:
        if table[name].dtype.kind not in "fiu" or not np.isfinite(table[name]).all():
            raise DataError(f"column {name!r} of {path} holds something that is not a finite number; {again}")
