"""Parkinsons Telemonitoring (PTD): 5875 voice recordings of 42 people, two clinical scores."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from ally.datasets.dataset import Parts
from ally.datasets.places import locate
from ally.datasets.splits import holdout, holdout_groups
from ally.errors import DataError

SUBJECT = "subject#"
TARGETS = ("motor_UPDRS", "total_UPDRS")
COLUMNS = 22


def read_parkinsons(folder: Path, target: Literal["motor", "total"], by_subject: bool) -> Parts:
    """19 features (age, sex, time of the test, 16 measures of the voice). Neither score and no subject number is among
    them."""
    import pandas as pd

    path = locate(folder, "parkinsons/parkinsons_updrs.data")
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read as CSV ({error}); fetch it again") from error
    if len(table.columns) != COLUMNS or not {SUBJECT, *TARGETS} <= set(table.columns):
        needed = ", ".join((SUBJECT, *TARGETS))
        raise DataError(
            f"{path} has {len(table.columns)} columns; {COLUMNS} are needed, {needed} among them: fetch it again"
        )
    features = table.drop(columns=[SUBJECT, *TARGETS])
    odd = next(
        (name for name in table.columns if table[name].dtype.kind not in "fiu" or not np.isfinite(table[name]).all()),
        None,
    )
    if odd is not None:
        raise DataError(f"column {odd!r} of {path} holds something that is not a finite number; fetch it again")
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
