"""Runs hostile files through `ally`, and sees what a command did: by a hook inside the process, and from outside."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from case import HostileCase

HERE = Path(__file__).parent
MOST_SECONDS = 5.0
"""Of computing: a busy machine makes a command slower, not dearer."""
TRAINING_SECONDS = 15.0
"""Of ``retrain``: the choice of a model by cross-validation takes five seconds on any few rows."""
MOST_BYTES = 2**30
PATIENCE = 40.0
"""Seconds by the clock after which a command hangs."""
MARKER = "marker"
"""The file in the folder ``elsewhere`` that code out of a hostile file would write."""


@dataclass(frozen=True)
class Outcome:
    """What a command printed, what it took, and what it did that nothing allows."""

    words: Sequence[str]
    code: int
    printed: str
    seconds: float
    peak: int
    in_time: bool
    acts: tuple[str, ...]

    def find_fault(self, answer: str) -> str | None:
        """The first broken promise, in words."""
        if self.acts:
            return f"it did what nothing allows: {'; '.join(self.acts)}"
        if not self.in_time:
            return f"it was not done after {PATIENCE:g} seconds"
        if self.code not in (0, 2) or "Traceback (most recent call last)" in self.printed:
            return f"it ended with {self.code}"
        if self.seconds > (TRAINING_SECONDS if self.words[0] == "retrain" else MOST_SECONDS):
            return f"it took {self.seconds:.1f} seconds of computing"
        if self.peak > MOST_BYTES:
            return f"it took {self.peak / 2**20:.0f} MB"
        return None if re.search(answer, self.printed) else f"it did not answer {answer!r}"


class Watcher:
    """Runs commands one after another. Each case has a folder of its own, with its own state and cache."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "ALLY_ENCODER": "none"}
        self._process = subprocess.Popen(
            [sys.executable, HERE / "watched.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)

    def run_case(self, case: HostileCase, folder: Path, most: int | None = None) -> list[Outcome]:
        """The first `most` of its commands, one after another on the same file; all of them without a number."""
        path = case.make(prepare_folder(folder))
        return [self.run([word.format(path=path) for word in words], folder) for words in case.commands[:most]]

    def run(self, words: Sequence[str], folder: Path) -> Outcome:
        """One command in a folder that `prepare_folder` made."""
        report, places = folder / "acts", ("work", "state", "cache", "tmp")
        report.unlink(missing_ok=True)
        environment = {
            "ALLY_STATE": str(folder / "state"),
            "ALLY_CACHE": str(folder / "cache"),
            "TMPDIR": str(folder / "tmp"),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "tmp" / "torch"),
            "HOME": str(folder / "home"),
            "COLUMNS": "1000",
            "ALLY_WATCHED_REPORT": str(report),
            "ALLY_WATCHED_PLACES": os.pathsep.join(str(folder / place) for place in places),
            "ALLY_WATCHED_SECRETS": str(folder / "elsewhere"),
        }
        asked = {
            "words": list(words),
            "folder": str(folder / "work"),
            "environment": environment,
            "out": str(folder / "out"),
            "err": str(folder / "err"),
            "patience": PATIENCE,
        }
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(asked).encode() + b"\n")
        stdin.flush()
        seen = json.loads(stdout.readline())
        acts = [" ".join(json.loads(line)) for line in _read(report).splitlines()]
        acts += [f"socket seen from outside: {socket}" for socket in seen["sockets"]]
        if (folder / "elsewhere" / MARKER).exists():
            acts.append("it ran code out of the file")
        printed = _read(folder / "err") + _read(folder / "out")
        return Outcome(
            words, seen["code"], printed, seen["seconds"], seen["peak"], seen["in_time"], tuple(dict.fromkeys(acts))
        )


def prepare_folder(folder: Path) -> Path:
    """Folders of one victim; returns the one for files that came from somebody else."""
    for name in ("work", "state", "cache", "tmp", "home", "elsewhere"):
        (folder / name).mkdir(parents=True, mode=0o700)
    (folder / "elsewhere" / "secret.txt").write_text("nobody's business")
    return folder / "work"


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
