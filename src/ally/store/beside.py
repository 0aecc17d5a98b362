"""Files beside a campaign's file, which whoever made the folder may have planted: looked at before anything uses them.

SQLite plays back a journal before the first read. If the last bytes of the journal name a super-journal (SQLite writes
such a name when one transaction spans several files, which never happens here), it then deletes the file of that name,
whichever it is. And a pipe that has the name of a journal or a lock would hang whoever opens it, a link lead elsewhere.
"""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

from ally.errors import StoreDamaged, StoreError

ENDINGS = ("-journal", "-wal", "-shm", "-turn")
"""What SQLite and the line of those who wait for it keep beside a file."""
_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""First bytes of a journal's header, last bytes of one that names a super-journal."""
_HEADER, _END = struct.Struct(">8s5I"), struct.Struct(">2I8s")


def check_beside(path: Path) -> None:
    """Refuses what `ally` and SQLite never leave beside a campaign. `path` has no links left in it."""
    for ending in ENDINGS:
        other = path.with_name(path.name + ending)
        found = _look(other)
        if found is None:
            continue
        if found.st_nlink > 1 and ending != "-turn":
            raise StoreDamaged(
                f"{other} is one file under {found.st_nlink} names, and SQLite would change it under all of them; copy "
                "the campaign's files to a folder of their own and open them there"
            )
        if ending == "-journal" and found.st_size:
            _check_journal(path, other)


def _look(path: Path) -> os.stat_result | None:
    """What is known of a file without opening it; None if there is none. Refuses links, pipes and devices."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be looked at ({error.strerror}); check its name and folder") from error
    if not stat.S_ISREG(found.st_mode):
        kind = "a link" if stat.S_ISLNK(found.st_mode) else "not a file"
        raise StoreDamaged(f"{path} is {kind}, and ally makes only files there; look at it, and remove it")
    return found


def _check_journal(path: Path, journal: Path) -> None:
    """Refuses a journal that names another file, or a size that this one cannot have had. One that another program is
    writing at this moment passes."""
    try:
        file = os.open(journal, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        # It is gone, or SQLite will not be able to read it either, and says so.
        return
    try:
        size = os.fstat(file).st_size
        head, tail = os.pread(file, _HEADER.size, 0), os.pread(file, _END.size, max(0, size - _END.size))
    finally:
        os.close(file)
    if len(tail) == _END.size and _END.unpack(tail)[2] == _MAGIC and 0 < _END.unpack(tail)[0] <= size:
        raise StoreDamaged(
            f"{journal} names another file, which SQLite would delete; ally never writes such a journal. Do not open "
            "the campaign with another program either: ask whoever gave it to you for a copy by `ally doctor --backup`"
        )
    if len(head) == _HEADER.size and head.startswith(_MAGIC):
        *_, pages, _sector, page_size = _HEADER.unpack(head)
        if pages * page_size > path.stat().st_size + size:
            raise StoreDamaged(
                f"{journal} would make the campaign's file {pages * page_size} bytes long, more than it ever had; it "
                "is not this file's journal: move it away"
            )


def open_lock_file(path: Path, beside: Path, access: int) -> int:
    """Opens a file that is only locked, making it with the permissions of the file `beside` it; never through a link,
    and never anything but a file."""
    _look(path)
    mode = stat.S_IMODE(beside.stat().st_mode) & 0o666 | 0o600 if beside.exists() else 0o666
    return os.open(path, access | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, mode)
