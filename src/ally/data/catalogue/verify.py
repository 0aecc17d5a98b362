"""Checks whether the files of a data set are the official ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ally.data.catalogue.entry import Entry, File
from ally.data.catalogue.places import found, missing
from ally.errors import AllyError, DataError


@dataclass(frozen=True)
class Check:
    """The result for one file."""

    path: str
    verdict: Literal["good", "readable", "differs", "bad", "missing"]
    """good: the official checksum; readable: no checksum is known, but the data set can be read; differs: readable, but
    not the official file; bad: cannot be read; missing."""
    detail: str = ""


def checksum_of(path: Path, like: str) -> str:
    """The checksum of a file in the form of `like`: ``md5:…`` or ``sha256:…``."""
    kind = like.partition(":")[0]
    if kind not in ("md5", "sha256"):
        raise DataError(f"the checksum {like!r} begins neither with md5: nor with sha256:")
    with path.open("rb") as stream:
        digest = hashlib.md5(usedforsecurity=False) if kind == "md5" else hashlib.sha256()
        while block := stream.read(2**20):
            digest.update(block)
    return f"{kind}:{digest.hexdigest()}"


def difference(file: File, path: Path) -> str | None:
    """How the file at `path` differs from the official one; None if it does not, or if nothing is known about the
    official file."""
    if file.checksum is not None and (met := checksum_of(path, file.checksum)) != file.checksum:
        return f"expected {file.checksum}, found {met}"
    if file.size is not None and (size := path.stat().st_size) != file.size:
        return f"expected {file.size} bytes, found {size}"
    return None


def verify_entry(entry: Entry, folder: Path) -> tuple[Check, ...]:
    """One check per file. If a checksum is unknown or differs, the data set is read once to see whether its format is
    right."""
    here = [found(file, folder) for file in entry.files]
    differences = [None if one is None else difference(*one) for one in here]
    sure = all(
        one is None or (one[0].checksum is not None and not odd) for one, odd in zip(here, differences, strict=True)
    )
    fault = None if sure else _fault(entry, folder)
    return tuple(
        Check(file.path, "missing") if one is None else _check(one[0], odd, fault)
        for file, one, odd in zip(entry.files, here, differences, strict=True)
    )


def _check(form: File, difference: str | None, fault: str | None) -> Check:
    if form.checksum is not None and difference is None:
        return Check(form.path, "good", form.checksum)
    about = difference or "no official checksum is known"
    if fault is not None:
        return Check(form.path, "bad", f"{about}; {fault}")
    return Check(form.path, "readable" if difference is None else "differs", about)


def _fault(entry: Entry, folder: Path) -> str | None:
    """Why the data set cannot be read; None if it can."""
    if any(file.needed for file in missing(entry, folder)):
        return "not read: files are missing"
    try:
        entry.read(folder)
    except (AllyError, OSError, ValueError) as error:
        return str(error)
    return None
