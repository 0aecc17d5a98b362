"""A table file of the user: features and target from columns, a fixed test split, everything learned from pool rows
only."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ally.datasets.dataset import Parts
from ally.datasets.encoding import encode
from ally.datasets.splits import holdout
from ally.datasets.targets import decide
from ally.errors import DataError, InputError, MissingPart
from ally.sources import rows
from ally.sources.rows.layout import NUMBERED, is_id
from ally.types import Task

if TYPE_CHECKING:
    import pandas as pd


def read_table_file(path: Path, target: str | None, wanted: Task | Literal["auto"] = "auto") -> tuple[Task, Parts]:
    """The table at `path`, its column `target` as the labels. Rows without a label are left out."""
    table, reading = _read(path)
    columns = ", ".join(map(str, table.columns[:20]))
    if target is None:
        raise InputError(f"{path} is a table: say which column holds the labels (target); its columns are {columns}")
    if target not in table.columns:
        raise InputError(f"{path} has no column {target!r} to be the target; its columns are {columns}")
    known = table[target].notna().to_numpy()
    notes = reading + ([] if known.all() else [f"{int((~known).sum())} rows have no {target} and are left out"])
    table = table[known]
    if len(table) < 2:
        raise DataError(f"{path} has {len(table)} rows with a {target}; at least two are needed")
    task, labels, note = decide(table[target], wanted)
    pool, test = holdout(len(table), labels if task == "classification" else None)
    if not len(test):
        classes = f" in {len(set(labels.tolist()))} classes" if task == "classification" else ""
        instead = (
            ", or say that the task is regression" if task == "classification" and labels.dtype.kind in "fi" else ""
        )
        raise DataError(
            f"{path} has {len(table)} rows with a {target}{classes}, too few for a test set of one in five; add "
            f"rows{instead}"
        )
    numbers = [name for name in table.columns if NUMBERED.fullmatch(name) and name != target]
    notes += [f"the column {name} numbers the rows and is left out" for name in numbers]
    ids = [name for name in table.columns if name not in (target, *numbers) and is_id(name) and table[name].is_unique][
        :1
    ]
    notes += [f"the column {name!r} holds the ids and is left out" for name in ids]
    X, encoded = encode(table.drop(columns=[target, *numbers, *ids]), pool, path)
    return task, Parts(X[pool], labels[pool], X[test], labels[test], (note, *notes, *encoded))


def _read(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """The table as the one reader of tables gives it, each column as numbers or texts, and notes."""
    import pandas as pd

    if path.suffix.lower() == ".parquet":
        table, notes = _read_parquet(path), []
    else:
        opened = rows.open_rows(path)
        found = list(opened.scan())
        bad = [row for row in found if isinstance(row, rows.BadRow)]
        good = [row.values for row in found if isinstance(row, rows.Row)]
        notes = [f"{len(bad)} rows are left out, the first in {bad[0].name}: {bad[0].reason}"] if bad else []
        if opened.written:
            # As text once more: pandas tells numbers, truth values, missing values and texts apart.
            buffer = io.StringIO()
            lines = csv.DictWriter(buffer, opened.columns)
            lines.writeheader()
            lines.writerows(good)
            table = pd.read_csv(io.StringIO(buffer.getvalue()))
        else:
            table = pd.DataFrame(good, columns=list(opened.columns))
        if getattr(opened, "decimal", ".") == ",":
            notes.append("numbers are written with a comma: 1,5 is read as 1.5")
    table.columns = table.columns.map(str)
    return table, notes


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise MissingPart("reading .parquet needs pyarrow: pip install 'ally-learn[parquet]'") from error
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read as a table ({error}); check the file") from error
