"""What is watched for is seen: a watcher that cannot see a connection proves nothing."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from watching import Watcher, prepare_folder

BYSTANDER = "import socket; s = socket.create_connection(('127.0.0.1', {port})); import time; time.sleep(.3)"
ACTS = {
    "connects": (BYSTANDER, "socket.connect"),
    "is seen from outside too": (BYSTANDER, "socket seen from outside: tcp from"),
    "listens": ("import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()", "socket.bind"),
    "listens, seen from outside": (
        "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); time.sleep(.3)",
        "tcp listens at",
    ),
    "connects without Python": (
        "import os, sys, subprocess; subprocess.run(['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/{port}; sleep .3'])",
        "socket seen from outside: tcp from",
    ),
    "asks for a name": ("import socket; socket.getaddrinfo('localhost', 80)", "socket.getaddrinfo"),
    "starts a program": ("import os; os.system('true')", "os.system"),
    "starts another": ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
    "writes elsewhere": ("open('../elsewhere/x', 'w')", "read .*/elsewhere/x"),
    "writes beside its places": ("open('../beside', 'w')", "write .*/beside"),
    "follows a link out": ("import os; os.symlink('../beside', 'link'); open('link', 'w')", "write .*/beside"),
    "reads a secret": ("open('../elsewhere/secret.txt')", "read .*/secret.txt"),
    "removes a file": ("import os; os.remove('../elsewhere/secret.txt')", "os.remove"),
    "leaves a marker": ("import subprocess; subprocess.run(['touch', '../elsewhere/marker'])", "ran code"),
    "does it in a Python of its own": (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import os; os.system(\"true\")'])",
        "os.system",
    ),
    "does it later": (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        '\'import time; time.sleep(.5); open("../beside", "w")\'], start_new_session=True)',
        "write .*/beside",
    ),
}
FAULTS = {
    "hangs": ("import time; time.sleep(60)", "not done after"),
    "computes": (
        "import time\nwhile time.process_time() < 1: pass",
        "seconds of computing",
    ),
    "fills memory": ("x = bytearray(2**30); x[::4096] = bytes(len(x[::4096]))", "it took .* MB"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "ended with -11"),
    "fails": ("1 / 0", "ended with 70"),
    "says something else": ("print('hello')", "did not answer"),
}


@pytest.fixture(scope="module")
def watcher() -> Iterator[Watcher]:
    made = Watcher()
    yield made
    made.close()


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.xdist_group("hostile")
@pytest.mark.parametrize("act", ACTS)
def test_acts_are_seen(watcher: Watcher, tmp_path: Path, port: int, act: str) -> None:
    code, seen = ACTS[act]
    prepare_folder(tmp_path)
    outcome = watcher.run(["!", code.replace("{port}", str(port))], tmp_path)
    assert any(re.search(seen, one) for one in outcome.acts), outcome
    assert "nothing allows" in (outcome.find_fault("") or "")


@pytest.mark.xdist_group("hostile")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(watcher: Watcher, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "hangs":
        monkeypatch.setattr("watching.PATIENCE", 1.0)
    if fault == "computes":
        monkeypatch.setattr("watching.MOST_SECONDS", 0.8)
    code, said = FAULTS[fault]
    prepare_folder(tmp_path)
    assert re.search(said, watcher.run(["!", code], tmp_path).find_fault("no such answer") or "")


@pytest.mark.xdist_group("hostile")
def test_an_innocent_command_does_none_of_it(watcher: Watcher, tmp_path: Path) -> None:
    work = prepare_folder(tmp_path)
    (work / "rows.csv").write_text("id,x,z\n" + "\n".join(f"s{n},{n % 7},{n % 3}" for n in range(40)))
    for words in (
        ["new", "pets", "--from", "rows.csv", "--classes", "a,b", "--evaluate", "0"],
        ["ask", "pets", "--n", "4", "--out", "todo.csv"],
        ["status", "pets"],
        ["doctor", "pets"],
    ):
        outcome = watcher.run(words, tmp_path)
        assert outcome.find_fault("") is None, outcome
