"""Training in a process of its own: ``python -m ally.campaign.worker``, with the place of the campaign on standard input.

Asking and answering never wait for it. One worker at a time trains a campaign; the lock ends with its process. What it could not do is on
record in the store, and is tried again, at once or with the next answers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from ally.campaign.duty import LOCK, due
from ally.store import Store

MODULE = "ally.campaign.worker"
WAIT = 5.0
"""Seconds to wait for the lock: somebody may hold it for a moment, only to see whether a training is under way."""

_children: list[subprocess.Popen[bytes]] = []
"""Kept so that ended ones are collected and none becomes a zombie."""


def start(place: str) -> int:
    """Starts a worker that outlives this process; its process number."""
    threads = os.environ.get("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) - 1)))
    # The place goes to standard input: a URL may hold a password, and others can read the arguments of a process.
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": threads},
    )
    assert process.stdin is not None
    process.stdin.write(place.encode())
    process.stdin.close()
    _children[:] = [child for child in (*_children, process) if child.poll() is None]
    return process.pid


def train_while_due(store: Store, batch: int, train: Callable[[], int]) -> int:
    """Trains until no more is due; how many models were made. A failure is on record; it counts against the attempts and no more."""
    made = 0
    with store.alone(LOCK, WAIT) as mine:
        while mine and due(store, batch):
            try:
                train()
                made += 1
            except Exception as error:  # noqa: PERF203
                print(f"training failed: {error}", file=sys.stderr)
    return made


def main() -> None:
    from ally.campaign.campaign import Campaign

    with Campaign.open(sys.stdin.read()) as campaign:
        campaign.train_while_due()


if __name__ == "__main__":
    main()
