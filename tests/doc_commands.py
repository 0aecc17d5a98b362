"""Documents whose commands are run: their blocks, and the output of each with what the page shows."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from ally.learning import auto, candidates

DOCS = Path(__file__).parent.parent / "docs"


def read_page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def run_blocks(page, folder, **environment):
    """Runs the blocks of a page in order; one pair of texts per block of commands."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **environment}
    printed = []
    for kind, block in re.findall(r"```(python|sh|text)\n(.*?)```", page, flags=re.DOTALL):
        if kind == "python":
            (folder / re.match(r"# (\w+\.py)\n", block)[1]).write_text(block)
        elif kind == "sh":
            line = ["bash", "-ec", block]
            done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (block, done.stderr)
            printed.append([done.stdout, ""])
        else:
            printed[-1][1] = block
    return printed


def shape_of(text):
    """Keeps words and drops numbers, whose last digits differ between processors."""
    return [re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d.]*", "#", line)).strip() for line in text.strip().splitlines()]


@contextmanager
def quick_choice():
    """`model="auto"` chooses between its simplest candidate and its network; the tests of the learners choose among all
    of them, which takes several times as long."""

    def two(*given):
        slate = candidates.slate_for(*given)
        return slate[0], slate[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto, "slate_for", two)
        yield
