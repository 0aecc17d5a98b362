"""Commands as a user calls them: in this process, which saves starting Python, or in their own process."""

import io
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from ally.cli import console, main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(capsys, monkeypatch):
    """``command("query", "X.npy", "--n", 3)`` runs what the program `ally` runs; `columns` is the width of the
    terminal."""

    def run(*words, cwd=None, columns=100, stdin=None):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["ally", *map(str, words)])
            patch.setenv("COLUMNS", str(columns))
            for written in (console.stdout, console.stderr):
                patch.setattr(written, "_width", columns)
            if cwd is not None:
                patch.chdir(cwd)
            if stdin is not None:
                patch.setattr(
                    sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin if isinstance(stdin, bytes) else stdin.encode()))
                )
            capsys.readouterr()
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
            return Done(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def process():
    """``process("query", …)`` is the same command in a process of its own."""

    def run(*words, cwd=None):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
        line = [sys.executable, "-m", "ally", *map(str, words)]
        done = subprocess.run(line, capture_output=True, text=True, cwd=cwd, env=environment, check=False)
        return Done(done.returncode, done.stdout, done.stderr)

    return run
