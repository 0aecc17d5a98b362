"""Campaigns to label in a page, and servers for them: in a thread of this process, or in a process of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from ally import Campaign

pytest.importorskip("fastapi", reason="FastAPI is not installed: the labelling page was not tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: the labelling page was not tested")

from ally.web.server import Plan, Ready, Server, prepare


def until(true: Callable[[], Any], seconds: float = 20.0, what: str = "it") -> Any:
    """Waits from outside: the page's policy forbids the evaluation that playwright's own waiting uses."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.02)
    return found


def write_photos(folder: Path, n: int, side: int = 64) -> dict[str, str]:
    """n pictures of the digits 0, 1 and 2; what each shows."""
    X, y = load_digits(return_X_y=True)
    keep = np.flatnonzero(y < 3)
    folder.mkdir(parents=True)
    truth = {}
    for number in range(n):
        values, label = X[keep[number % len(keep)]], y[keep[number % len(keep)]]
        id = f"{number:05}.png"
        Image.fromarray((values.reshape(8, 8) * 15.9).astype(np.uint8)).resize((side, side)).save(folder / id)
        truth[id] = f"digit {label}"
    return truth


CLASSES = ["digit 0", "digit 1", "digit 2"]


@dataclass
class Served:
    """A server in this process."""

    ready: Ready
    campaign: Campaign

    @property
    def address(self) -> str:
        return self.ready.address.partition("#")[0]

    @property
    def origin(self) -> str:
        return self.address.rstrip("/")

    def client(self, **more: Any) -> httpx.Client:
        """Calls the API as a page of this server would."""
        return httpx.Client(base_url=f"{self.origin}/api/v1", headers={"Origin": self.origin}, timeout=30, **more)


@contextlib.contextmanager
def serving(campaign: Campaign, plan: Plan = Plan(), port: int = 0) -> Iterator[Served]:
    ready = prepare(campaign, plan)
    up = threading.Event()
    server = Server(ready.page, up.set, ready.limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [ready.socket]}, daemon=True)
    thread.start()
    assert up.wait(20)
    yield Served(ready, campaign)
    server.handle_exit(signal.SIGINT, None)
    thread.join(20)
    assert not thread.is_alive(), "the server did not end"
    campaign.close()


@dataclass
class Running:
    """`ally label` in a process of its own."""

    place: str
    port: int
    words: tuple[str, ...] = ()
    process: subprocess.Popen[str] | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Running:
        command = [sys.executable, "-m", "ally", "label", self.place, "--no-browser", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, *self.words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        assert "at http://" in line, line
        return self

    def kill(self, how: int = signal.SIGKILL) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        code = self.process.wait(20)
        self.process.stdout.close()  # type: ignore[union-attr]
        return code


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        if name in os.environ:
            monkeypatch.delenv(name)
