"""The helper that looks for what is left behind sees it."""

import pytest
from leftovers import SHARED, Session

pytestmark = [pytest.mark.slow, pytest.mark.ray]
HOLDER = f"""
import mmap, tempfile, time
with tempfile.TemporaryFile(dir="{SHARED}") as file:  # it has no name
    file.truncate(4096)
    held = mmap.mmap(file.fileno(), 4096)
    print("holds", flush=True)
    time.sleep(60)
"""


def test_processes_and_memory_without_a_name_are_seen_until_they_are_gone(tmp_path):
    session = Session(tmp_path)
    with session.start("-c", HOLDER) as holder:
        assert holder.stdout.readline() == "holds\n"
        assert session.look() == 1
        processes, memory = session.left(0)
        assert [process.number for process in processes] == [holder.pid]
        assert len(memory) == 1
        assert session.processes("no such title") == []
        holder.kill()
    assert session.left(5) == ([], set())
