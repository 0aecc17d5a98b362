"""Untrusted archives: no member may leave its folder, and links and devices are refused."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO

from ally.data.archive_files import check_members
from ally.data.damage import refuse_damage
from ally.data.paths import inside, open_regular
from ally.errors import DataError
from ally.files import replacing

LARGEST_MEMBER = 64 * 2**20
"""Images in an archive that claim to be larger than this are not read."""
MEMBERS = 1_000_000
"""Files in an archive of images."""
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError)


def ensure_inside(name: str, archive: Path) -> str:
    """The name of a member, unless it is absolute or climbs out of the folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise DataError(
            f"{archive} has a member {name!r} that lies outside its folder; it was not unpacked: do not trust this file"
        )
    return str(path)


def unpack(archive: Path, holds: Iterable[str], folder: Path) -> None:
    """Unpacks the tar members `holds` to the same paths below `folder`. A file gets its final name only when it is
    complete."""
    wanted = set(holds)
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = ensure_inside(member.name, archive)
                if not (member.isfile() or member.isdir()):
                    raise DataError(
                        f"{archive} has a member {name!r} that is a link or a device; do not trust this file"
                    )
                if name in wanted and member.isfile() and (stream := tar.extractfile(member)) is not None:
                    with stream:
                        _write(folder / name, stream)
                    wanted.discard(name)
                if not wanted:
                    return
    except DAMAGED as error:
        raise DataError(f"{archive} is damaged ({error}); fetch it again") from error
    raise DataError(f"{archive} lacks {', '.join(sorted(wanted))}; fetch it again")


def _write(path: Path, stream: IO[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside, aside.open("wb") as out:
        shutil.copyfileobj(stream, out, 2**20)


class Tree:
    """Files by path, in a folder or in a zip that is read in place."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._zip: zipfile.ZipFile | None = None
        if place.is_dir():
            self.names = sorted(str(PurePosixPath(*path.relative_to(place).parts)) for path in _files(place))
            return
        with refuse_damage(f"{place} cannot be opened as a zip", "fetch it again"):
            self._zip = zipfile.ZipFile(place)
            check_members(self._zip, place, MEMBERS)
        self.names = sorted(ensure_inside(info.filename, place) for info in self._zip.infolist() if not info.is_dir())

    def read(self, name: str) -> bytes:
        if self._zip is None:
            with open_regular(inside(self.place, name)) as stream:
                return stream.read()
        with refuse_damage(f"{name} in {self.place} cannot be read", "fetch the file again"):
            info = self._zip.getinfo(name)
            if info.file_size > LARGEST_MEMBER:
                raise DataError(
                    f"{name} in {self.place} claims to hold {info.file_size} bytes; at most {LARGEST_MEMBER} are read"
                )
            return self._zip.read(info)

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *error: object) -> None:
        if self._zip is not None:
            self._zip.close()


def _files(folder: Path) -> Iterable[Path]:
    """Every file below `folder`, except hidden ones; linked folders are not entered."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__MACOSX")))
        yield from (Path(here) / name for name in files if not name.startswith("."))
