"""Scratch space that moves to disk and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from ally.errors import MemoryBudgetExceeded
from ally.execution.memory import Scratch


def test_memory_first_then_maps():
    with Scratch(4 * 100) as scratch:
        small, large = scratch.empty(5, 10), scratch.empty(200, 3)
        large[:] = 7.0
        small[:] = 1.0
        assert scratch.mapped == 4 * 600
        assert float(large.sum()) == 7.0 * 600
    assert float(large.sum()) == 7.0 * 600, "a map that is still referred to stays valid"


def test_nothing_is_left_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Scratch(0) as scratch:
        scratch.empty(1000, 10)[:] = 1.0
        assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_after_kill(tmp_path):
    code = (
        "import time; from ally.execution.memory import Scratch; s = Scratch(0); x = s.empty(1_000_000); x[:] = 1.0;"
        "print('ready', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + 5
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_before_it_is_filled():
    with Scratch(0) as scratch, pytest.raises(MemoryBudgetExceeded, match="MiB free; set TMPDIR"):
        scratch.empty(2**40, 1024)
