"""What this person decided on this machine, and what only this person may read: kept outside every data file.

A campaign or a model may come from somebody else, so nothing in it can grant a permission. What its user trusts, who is
signed in at a page and the secret keys are kept in the state folder: ``ALLY_STATE``, else where the platform keeps such
files (``~/.local/state/ally`` on Linux).
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ally.errors import InputError, StateUnavailable
from ally.files import replacing

VARIABLE = "ALLY_STATE"
"""The environment variable that names the state folder."""
CACHE_VARIABLE = "ALLY_CACHE"
"""The environment variable that names the folder for what can be made again."""
KEY_BYTES = 32
_PRIVATE_FOLDER = 0o700


def find_state_folder() -> Path:
    """Where it is or would be; nothing is made. Raises `StateUnavailable` for a user without a home."""
    named = os.environ.get(VARIABLE)
    if named and not named.startswith(("/", "~")):
        raise InputError(f"{VARIABLE} is {named!r}, which depends on the current folder; give an absolute path")
    import platformdirs

    return _find_user_folder(named, lambda: platformdirs.user_state_path("ally", appauthor=False), VARIABLE)


def find_cache_folder() -> Path:
    """The folder for what can be made again: ``ALLY_CACHE``, else the user's cache folder. Raises `StateUnavailable`
    for a user without a home."""
    named = os.environ.get(CACHE_VARIABLE)
    if named and not named.startswith("~"):
        return Path(named).absolute()
    import platformdirs

    return _find_user_folder(named, lambda: platformdirs.user_cache_path("ally", appauthor=False), CACHE_VARIABLE)


def _find_user_folder(named: str | None, find_default: Callable[[], Path], variable: str) -> Path:
    """Without a home "~" stays as it is or is an error. A folder of that name in the current folder could be somebody
    else's, and would decide for this person."""
    try:
        folder = Path(named).expanduser() if named else find_default()
    except RuntimeError:
        folder = Path("~")
    if not folder.is_absolute():
        raise StateUnavailable(f"there is no home folder here; set {variable} to a folder of yours")
    return folder


def is_private(folder: Path) -> bool:
    """Whether nobody but this user, and the administrator, can write to it."""
    found = folder.stat()
    return found.st_uid in (os.geteuid(), 0) and not stat.S_IMODE(found.st_mode) & 0o022


def open_state_folder(*parts: str) -> Path:
    """The state folder, or a folder in it, made if it is missing. Raises `StateUnavailable` with the reason if it
    cannot be made or others can write to it."""
    folder = find_state_folder()
    try:
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        _check_private(folder)
        for part in parts:
            folder = folder / part
            folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StateUnavailable(
            f"the folder for your decisions, {folder}, cannot be used ({reason}); set {VARIABLE} to a folder of yours"
        ) from error
    return folder


def _check_private(folder: Path) -> None:
    """A folder that others can write to would let them decide for this person."""
    if not is_private(folder):
        raise StateUnavailable(
            f"others can write to the folder for your decisions, {folder}; run `chmod go-w {folder}`, or set "
            f"{VARIABLE} to a folder of yours"
        )


def write_private(path: Path, data: bytes) -> None:
    """Replaces a file in the state folder, complete or not at all; only this user can read it."""
    try:
        with (
            replacing(path) as aside,
            os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
        ):
            file.write(data)
    except OSError as error:
        raise StateUnavailable(
            f"{path} cannot be written ({error.strerror}); check the disk and its permissions"
        ) from error


def read_private(path: Path) -> bytes | None:
    """A file in the state folder; None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateUnavailable(f"{path} cannot be read ({error.strerror}); check its permissions") from error


def load_key(name: str = "key") -> bytes:
    """A secret that only this user has on this machine, made on first use."""
    folder = open_state_folder()
    path = folder / name
    with lock_state(folder / f"{name}.lock"):
        found = read_private(path)
        if found is None or len(found) != KEY_BYTES:
            found = secrets.token_bytes(KEY_BYTES)
            write_private(path, found)
    return found


@contextmanager
def lock_state(path: Path) -> Iterator[None]:
    """One process at a time changes what is kept under this name."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateUnavailable(f"{path} cannot be opened ({error.strerror}); check its permissions") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
