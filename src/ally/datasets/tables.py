"""A table file of the user: features and target from columns, a fixed test split, everything learned from pool rows
only."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ally.datasets.dataset import Parts
from ally.datasets.encoding import encode
from ally.datasets.splits import holdout
from ally.datasets.targets import decide
from ally.errors import DataError, InputError, MissingPart
from ally.types import Task

if TYPE_CHECKING:
    import pandas as pd

NUMBERED = re.compile(r"Unnamed: \d+(_level_\d+)?")
"""Columns without a name, as tables saved with their index have."""
WITH_COMMA, WITH_POINT = r"\s*-?\d+,\d+\s*", r"\s*-?\d*\.\d+\s*"
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def read_table_file(path: Path, target: str | None, wanted: Task | Literal["auto"] = "auto") -> tuple[Task, Parts]:
    """The table at `path`, its column `target` as the labels. Rows without a label are left out."""
    table = _read(path)
    columns = ", ".join(map(str, table.columns[:20]))
    if target is None:
        raise InputError(f"{path} is a table: say which column holds the labels (target); its columns are {columns}")
    if target not in table.columns:
        raise InputError(f"{path} has no column {target!r} to be the target; its columns are {columns}")
    known = table[target].notna().to_numpy()
    notes = [] if known.all() else [f"{int((~known).sum())} rows have no {target} and are left out"]
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
    X, encoded = encode(table.drop(columns=[target, *numbers]), pool, path)
    return task, Parts(X[pool], labels[pool], X[test], labels[test], (note, *notes, *encoded))


def is_table(path: Path) -> bool:
    return path.name.lower().endswith(TABLES)


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    name = path.name.lower()
    try:
        table = (
            pd.read_parquet(path) if name.endswith(".parquet") else _read_text(path, "\t" if ".tsv" in name else ",")
        )
    except ImportError as error:
        raise MissingPart("reading .parquet needs pyarrow: pip install 'ally-learn[parquet]'") from error
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read as a table ({error}); check the file") from error
    table.columns = table.columns.map(str)
    _ensure_distinct(path, table.columns)
    return table


def _read_text(path: Path, separator: str) -> pd.DataFrame:
    """A semicolon separates if the header has no comma; spreadsheets then write numbers with a comma, unless more have
    a point."""
    import pandas as pd

    header = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str)
    if separator == "," and header.shape[1] == 1 and ";" in str(header.iloc[0, 0]):
        separator = ";"
        header = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str)
    # The table itself would come with repeated names already changed.
    _ensure_distinct(path, pd.Index(header.iloc[0].dropna()))
    if separator != ";":
        return pd.read_csv(path, sep=separator)
    cells = pd.read_csv(path, sep=separator, dtype=str).stack()
    if cells.str.fullmatch(WITH_COMMA).sum() <= cells.str.fullmatch(WITH_POINT).sum():
        return pd.read_csv(path, sep=separator)
    table = pd.read_csv(path, sep=separator, decimal=",")
    # Columns that hold something else too stay text; their numbers should read as such all the same.
    for name in table.columns[~table.dtypes.map(pd.api.types.is_numeric_dtype)]:
        numbers = table[name].str.fullmatch(WITH_COMMA).fillna(False).astype(bool)
        table.loc[numbers, name] = table.loc[numbers, name].str.replace(",", ".")
    return table


def _ensure_distinct(path: Path, names: pd.Index[Any]) -> None:
    repeated = names[names.duplicated()]
    if len(repeated):
        raise DataError(f"{path} has the column {repeated[0]!r} more than once; give every column its own name")
