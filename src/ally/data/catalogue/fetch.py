"""Fetching with pooch: a file gets its name only once its checksum matches; verified files are not fetched again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ally.data.catalogue.archives import unpack
from ally.data.catalogue.entry import Archive, Entry, File
from ally.data.catalogue.places import found
from ally.data.catalogue.verify import checksum_of, difference, verify_entry
from ally.errors import DataError
from ally.types import Progress

TIMEOUT = 30
"""Seconds without an answer after which the next address is tried."""


def fetch_entry(name: str, entry: Entry, folder: Path, progress: Progress | None = None) -> tuple[str, ...]:
    """Fetches what is missing or damaged. Returns one sentence per file about what was done."""
    if not entry.files:
        return (f"{name} ships with scikit-learn: there is nothing to fetch",)
    if not entry.fetchable:
        raise DataError(f"{name} cannot be fetched: {entry.by_hand} (folder: {folder})")
    folder.mkdir(parents=True, exist_ok=True)
    bad = {check.path for check in verify_entry(entry, folder) if check.verdict in ("bad", "differs", "missing")}
    done = [_fetch_archive(archive, entry, folder, bad, progress) for archive in entry.archives]
    done += [_fetch_file(file, folder, file.path in bad, progress) for file in entry.files if file.urls]
    return tuple(done)


def _fetch_file(file: File, folder: Path, bad: bool, progress: Progress | None) -> str:
    here = found(file, folder)
    if here is not None and (not bad or (here[0].checksum is not None and difference(*here) is None)):
        return f"{here[0].path} is already here"
    _download(file.urls, str(file.checksum), folder / file.path, progress)
    return f"{file.path} fetched"


def _fetch_archive(archive: Archive, entry: Entry, folder: Path, bad: set[str], progress: Progress | None) -> str:
    if not bad & {file.path for file in entry.files if file.path in archive.holds}:
        return f"the content of {archive.path} is already here"
    path = folder / archive.path
    own = not (path.is_file() and checksum_of(path, archive.checksum) == archive.checksum)
    if own:
        _download(archive.urls, archive.checksum, path, progress)
    unpack(path, archive.holds, folder)
    if own:
        path.unlink()
    return f"{archive.path} {'fetched and ' if own else ''}unpacked"


def _download(urls: tuple[str, ...], checksum: str, path: Path, progress: Progress | None) -> None:
    """From the first address that gives the expected file."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    reasons = []
    for url in urls:
        transfer = pooch.HTTPDownloader(progressbar=_Bar(path.name, progress), chunk_size=2**16, timeout=TIMEOUT)
        try:
            pooch.retrieve(url, checksum, fname=path.name, path=path.parent, downloader=_checked(transfer, checksum))
            path.chmod(0o644)  # a temporary file is private to its owner, but the data folder may be shared
            return
        except (OSError, DataError) as error:  # requests raises OSErrors
            reasons.append(f"{url}: {error}")
    raise DataError(
        f"{path} could not be fetched; nothing was put there. {'; '.join(reasons)}. "
        f"Run the command again; behind a proxy set HTTPS_PROXY; or put the file there yourself ({checksum})"
    )


def _checked(transfer: Callable[..., Any], checksum: str) -> Callable[..., None]:
    """A transfer that refuses a file with a different checksum and names both; pooch then removes the file."""

    def download(url: str, output: Any, pooch: Any, check_only: bool = False) -> None:
        transfer(url, output, pooch)
        met = checksum_of(Path(output), checksum)
        if met != checksum:
            raise DataError(f"the file is damaged or was changed: expected {checksum}, found {met}")

    return download


@dataclass
class _Bar:
    """A progress bar for pooch that forwards to `Progress`."""

    name: str
    progress: Progress | None
    total: int = 0
    done: int = 0

    def update(self, amount: int) -> None:
        self.done = min(self.done + amount, self.total)
        if self.progress is not None and self.total:
            self.progress(f"fetching {self.name}", self.done, self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        """Nothing to close."""
