"""Where a SQLite file may live: not on a network file system, whose locks and flushes cannot be relied on."""

from __future__ import annotations

import re
from pathlib import Path

from ally.errors import StoreError

_NAMES = {
    "9p",
    "acfs",
    "afp",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "davfs",
    "davfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "orangefs",
    "panfs",
    "pvfs2",
    "smb2",
    "smb3",
    "smbfs",
    "sshfs",
}
_IN_USER_SPACE = {"ceph", "davfs2", "gcsfuse", "glusterfs", "goofys", "rclone", "s3fs", "smbnetfs", "sshfs"}
NETWORK = _NAMES | {f"fuse.{name}" for name in _IN_USER_SPACE}
_MOUNTS = Path("/proc/mounts")


def file_system(path: Path, mounts: str) -> str | None:
    """The kind of file system that holds `path`, from the text of /proc/mounts: the longest mount point above it, the
    last of equals."""
    best, kind = -1, None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        # Blanks in a mount point are written as \040.
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[1]))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind


def check_local(path: Path) -> None:
    """Refuses network file systems; says nothing where the system cannot tell (no /proc/mounts)."""
    try:
        mounts = _MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return
    kind = file_system(path.resolve(), mounts)
    if kind in NETWORK:
        raise StoreError(
            f"{path} is on a network file system ({kind}), where SQLite can lose or damage a campaign; "
            "put the file on a local disk, or use a PostgreSQL server: postgresql://…"
        )
