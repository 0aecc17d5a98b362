"""Where the parts of a campaign are: its store, its source relative to it, and its caches."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ally.encoders.places import kept_for
from ally.store.sqlite import SAFE_WAL, wal_is_safe

PATHS = ("embeddings", "ids", "folder")
"""Source options that name files."""


def absolute(place: str | Path) -> str | Path:
    """The place as an absolute path; URLs are unchanged."""
    return Path(place).absolute() if beside(place) is not None else place


def on_disk(place: str | Path) -> bool:
    return str(place) not in ("memory", ":memory:")


def beside(place: str | Path) -> Path | None:
    """The folder of a store that is a file."""
    if isinstance(place, str) and ("://" in place or not on_disk(place)):
        return None
    return Path(place).absolute().parent


def cache(place: str | Path) -> Path | None:
    """The folder for caches, such as small copies of images: next to the store."""
    folder = beside(place)
    return None if folder is None else folder / f"{Path(place).name}-cache"


def encoded_folder(place: str | Path) -> Path | None:
    """Where vectors of an encoder are kept: beside the store; for one on a server in a folder of this machine; None for
    one in memory."""
    if beside(place) is not None:
        return Path(place).absolute().with_suffix(".encoded")
    # The password is left out: it may change while the campaign stays the same.
    return kept_for(re.sub("//[^@/]*@", "//", str(place))) if on_disk(place) else None


def kept_place(place: Any, folder: Path | None) -> str | None:
    """How a source's place is stored: relative to the store if it is below the store's folder, else absolute."""
    if not isinstance(place, (str, Path)):
        return None
    path = Path(os.path.abspath(place))
    if folder is not None and path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return str(path)


def found_place(kept: str | None, folder: Path | None) -> Path | None:
    """The inverse of `kept_place`."""
    if kept is None:
        return None
    return Path(kept) if folder is None else folder / kept


def kept_options(options: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """Options as JSON; anything in memory must be passed again."""
    kept = {name: value for name, value in options.items() if value is not None}
    for name in PATHS:
        if name in kept:
            kept[name] = kept_place(kept[name], folder)
    return kept


def sqlite_journal() -> str:
    """How campaign files are kept safe on this machine, in words."""
    return (
        "write-ahead log"
        if wal_is_safe()
        else f"rollback journal, as versions before {'.'.join(map(str, SAFE_WAL))} need it"
    )
