"""Zip files of other people: their directory is looked at before anything in them is unpacked."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ally.data.damage import refuse_damage
from ally.data.paths import open_regular
from ally.errors import DataError

MEMBERS = 10_000
"""Files in an archive of arrays or of a workbook."""
KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Ways of packing that unpack a little at a time; the others may take gigabytes for a kilobyte."""
ENCRYPTED = 1


@contextmanager
def open_archive(path: Path, kind: str, most: int = MEMBERS) -> Iterator[zipfile.ZipFile]:
    """The archive at `path`, called a `kind` in messages; what is raised while it is read is a `DataError`."""
    words = f"{path} cannot be read as {kind}", "save it again"
    with refuse_damage(*words), open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
        check_members(archive, path, most)
        yield archive


def check_members(archive: zipfile.ZipFile, path: Path, most: int) -> None:
    members = archive.infolist()
    if len(members) > most:
        raise DataError(f"{path} holds {len(members)} files; at most {most} are read")
    odd = next((one for one in members if one.compress_type not in KNOWN or one.flag_bits & ENCRYPTED), None)
    if odd is not None:
        how = "encrypted" if odd.flag_bits & ENCRYPTED else f"packed in a way (number {odd.compress_type})"
        raise DataError(
            f"{path} has a member {odd.filename[:60]!r} that is {how} that is not read; pack it again by deflate"
        )


def count_unpacked(archive: zipfile.ZipFile) -> int:
    """Bytes that all members say they hold; no more of any is unpacked."""
    return sum(member.file_size for member in archive.infolist())
