"""The helper that looks for what is left behind sees it."""

import subprocess
import sys

import pytest
from leftovers import SHARED, Session

pytestmark = [pytest.mark.slow, pytest.mark.ray]
HOLDER = f"""
import mmap, sys, tempfile
with tempfile.TemporaryFile(dir="{SHARED}") as file:  # it has no name
    file.truncate(4096)
    held = mmap.mmap(file.fileno(), 4096)
    print("holds", flush=True)
    sys.stdin.read()
"""


def test_processes_and_memory_without_a_name_are_seen_until_they_are_gone(tmp_path):
    session = Session(str(tmp_path))
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=session.environment) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"holds\n"
        assert session.look() == 1
        processes, memory = session.left(0)
        assert processes == [holder.pid]
        assert len(memory) == 1
        assert session.processes("no such command") == []
        holder.communicate()
    assert session.left(5) == ([], set())
