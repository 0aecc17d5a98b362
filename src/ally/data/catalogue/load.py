"""Data sets by name or by path, and the commands of the catalogue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from ally._renamed_arguments import renamed_arguments
from ally.data.arrays.samples import is_array_file
from ally.data.catalogue.catalogue import DATASETS
from ally.data.catalogue.dataset import Dataset
from ally.data.catalogue.fetch import fetch_entry
from ally.data.catalogue.own_data import DataOptions, read_own_data
from ally.data.catalogue.places import default_data_dir, ensure_here
from ally.data.catalogue.reading import Reading
from ally.data.catalogue.verify import Check, verify_entry
from ally.data.tables import TABLES, is_table
from ally.errors import InputError
from ally.types import Progress, Task


@renamed_arguments(target="label")
def load(
    name: str | Path,
    data_dir: Path | None = None,
    *,
    label: str | None = None,
    task: Task | Literal["auto"] = "auto",
    reading: Reading = Reading(),
) -> Dataset:
    """A data set of the catalogue, or a file or folder of yours.

    Args:
        name: a name of `DATASETS`, else a path: a table (.csv .tsv .xlsx .parquet .jsonl), .npz with X and y, .npy, or
            a folder of images by class. A name of the catalogue comes first; write ``./mnist`` for a folder of that
            name.
        data_dir: where the catalogue's files are; `default_data_dir()` if None.
        label: the column of a table that holds the labels, if its name does not say so; for .npy the path of a second
            .npy file.
        task: the task of a file; by default the labels tell, by the same rule as in `ally.query`.
        reading: how a file or folder is read, if that cannot be detected: a column of texts, no header, vectors by id.

    All seeds of an experiment share one test set.
    """
    if str(name) not in DATASETS:
        return read_own_data(find_own(str(name)), str(name), DataOptions(None, label, task, reading))
    if label is not None:
        raise InputError.about(
            "label", label, f"does not go with {name!r}, a data set of the catalogue; leave label out"
        )
    reading.refuse(f"{name!r}, a data set of the catalogue")
    return load_named(str(name), data_dir)


def load_named(name: str, data_dir: Path | None = None) -> Dataset:
    """A data set of the catalogue."""
    entry = DATASETS[name]
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    ensure_here(name, entry, folder)
    parts = entry.read(folder)
    return Dataset(name, entry.task, *parts[:4], kind=entry.kind, notes=parts.notes, raw=parts.raw)


def find_own(name: str) -> Path:
    """The file or folder of that name; raises if it is none that can be read."""
    path = Path(name).expanduser()
    if path.is_dir() or (path.is_file() and (is_table(path) or is_array_file(path))):
        return path
    if path.is_file():
        readable = ", ".join((*TABLES, ".npz", ".npy"))
        raise InputError(
            f"{path} has the ending {path.suffix or '(none)'!r}; use one of {readable} and folders of images"
        )
    if is_table(path) or is_array_file(path) or os.sep in name:
        raise InputError(f"{path} does not exist; give a file, a folder of images, or a name listed by `ally datasets`")
    DATASETS[name]
    return path


def fetch(name: str, data_dir: Path | None = None, progress: Progress | None = None) -> tuple[str, ...]:
    """Fetches a data set of the catalogue, except files that are already here and verified. Returns one sentence per
    file about what was done."""
    return fetch_entry(name, DATASETS[name], default_data_dir() if data_dir is None else Path(data_dir), progress)


def verify(name: str, data_dir: Path | None = None) -> tuple[Check, ...]:
    """Checks the files of a data set of the catalogue, one `Check` each; none for data that ships with scikit-learn."""
    return verify_entry(DATASETS[name], default_data_dir() if data_dir is None else Path(data_dir))
