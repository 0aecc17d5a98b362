"""Training in a process of its own, which reads the place of the campaign from standard input.

Asking and answering never wait for it. One worker at a time trains a campaign; the lock ends with its process. What it
could not do is on record in the store, and is tried again, at once or with the next answers.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable

from ally.campaign.training.schedule import LOCK, due
from ally.errors import StoreError
from ally.store import Store

# Not by -m: that puts the current folder first, and a file queue.py there would be taken for Python's own.
PROGRAM = """
import sys
sys.path[:] = filter(None, sys.path)
from ally.campaign import Campaign
with Campaign.open(sys.stdin.read()) as campaign:
    campaign.train_while_due(now="--now" in sys.argv)
"""
WAIT = 5.0
"""Seconds to wait for the lock: somebody may hold it for a moment, only to see whether a training is under way."""

_children: dict[str, subprocess.Popen[bytes]] = {}
"""By place; kept so that none becomes a zombie, and none is started beside another."""


@atexit.register
def _let_go() -> None:
    """They outlive this process on purpose; Python would warn of each."""
    for process in _children.values():
        if process.poll() is None:
            process.returncode = 0


def start(place: str, *, now: bool = False) -> bool:
    """Starts a worker that outlives this process, unless one that this process started is still at it; whether it did.

    With `now` it trains whether something is due or not.
    """
    before = _children.get(place)
    if before is not None and before.poll() is None:
        return False
    threads = os.environ.get("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) - 1)))
    # The place goes to standard input: a URL may hold a password, and others can read the arguments of a process.
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *(["--now"] if now else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": threads},
    )
    assert process.stdin is not None
    process.stdin.write(place.encode())
    process.stdin.close()
    _children[place] = process
    return True


def train_while_due(store: Store, batch: int, train: Callable[[], int], *, now: bool = False) -> int:
    """Trains until no more is due; how many models were made. A failure is on record; it counts against the attempts
    and no more."""
    made = 0
    while True:
        with store.exclusive(LOCK, WAIT) as mine:
            if not mine:
                return made
            while now or due(store, batch):
                now = False
                try:
                    train()
                    made += 1
                except StoreError:
                    # What the store cannot take is not on record either, so that no attempt would be counted.
                    raise
                except Exception as error:
                    print(f"training failed: {error}", file=sys.stderr)
        # Whoever answered while the lock was still held saw a training under way and started none.
        if not due(store, batch):
            return made
