"""The data folder: where it is, what is in it, what is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

from ally.data.catalogue.entry import Entry, File
from ally.errors import DataError

State: TypeAlias = Literal["built in", "here", "partly", "absent"]


def default_data_dir() -> Path:
    """The folder in the environment variable ``ALLY_DATA``, else the user's cache folder."""
    named = os.environ.get("ALLY_DATA")
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("ally"))


def found(file: File, folder: Path) -> tuple[File, Path] | None:
    """The available form of `file` and its path; None if there is none."""
    for form in (file, *file.instead):
        path = folder / form.path
        if path.is_file():
            return form, path
    return None


def missing(entry: Entry, folder: Path) -> list[File]:
    """Files that are not there in any form."""
    return [file for file in entry.files if found(file, folder) is None]


def state(entry: Entry, folder: Path) -> State:
    if not entry.files:
        return "built in"
    gone = len(missing(entry, folder))
    return "here" if not gone else "absent" if gone == len(entry.files) else "partly"


def locate(folder: Path, *paths: str) -> Path:
    """The first of `paths` below `folder` that is a file; raises if there is none."""
    for path in paths:
        if (folder / path).is_file():
            return folder / path
    raise DataError(
        f"{folder / paths[0]} is missing; put the file there, or run `ally datasets list` to see what else is missing"
    )


def ensure_here(name: str, entry: Entry, folder: Path) -> None:
    """Raises if files are missing, naming the folder, the files and how to get them."""
    gone = [file.path for file in missing(entry, folder) if file.needed]
    if not gone:
        return
    remedy = (
        f"run: ally datasets fetch {name} --data-dir {folder}"
        if entry.fetchable
        else f"it cannot be downloaded: {entry.by_hand}"
    )
    raise DataError(f"the data set {name!r} is not in {folder} (missing: {', '.join(gone)}); {remedy}")
