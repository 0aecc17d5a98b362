"""Where the parts of a campaign are: its store, its source relative to it, and its caches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ally.data.kinds import name_kind
from ally.errors import StateUnavailable
from ally.state import find_cache_folder, is_private

PATHS = ("embeddings", "ids", "folder")
"""Source options that name files."""
KIND = "kind"
"""The source option that names a kind of data, which may be code."""


def absolute(place: str | Path) -> str | Path:
    """The place as an absolute path; URLs are unchanged."""
    return Path(place).absolute() if beside(place) is not None else place


def on_disk(place: str | Path) -> bool:
    return str(place) not in ("memory", ":memory:")


def beside(place: str | Path) -> Path | None:
    """The folder of a store that is a file; of the file itself, where `place` is a link to it: what lies beside a link
    may be somebody else's."""
    if isinstance(place, str) and ("://" in place or not on_disk(place)):
        return None
    path = Path(place).absolute()
    return (path.resolve() if path.is_symlink() else path).parent


def open_cache(campaign: str) -> Path | None:
    """The folder for what can be made again, such as small copies of images, by the campaign's id. It lies in the
    user's cache folder: what came with a campaign from somebody else is never taken for a cache. None if it cannot be
    made."""
    try:
        folder = find_cache_folder() / "campaigns" / campaign
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if is_private(folder) and is_private(folder.parent) else None
    except (OSError, StateUnavailable):
        return None


def vectors_folder(cache: Path | None) -> Path | None:
    """Where vectors of an encoder are kept."""
    return None if cache is None else cache / "encoded"


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
    if KIND in kept:
        kept[KIND] = name_kind(kept[KIND])
    return kept


def sqlite_journal() -> str:
    """How campaign files are kept safe on this machine, in words."""
    from ally.store.sqlite import SAFE_WAL, wal_is_safe

    return (
        "write-ahead log"
        if wal_is_safe()
        else f"rollback journal, as versions before {'.'.join(map(str, SAFE_WAL))} need it"
    )
