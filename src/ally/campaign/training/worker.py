"""The process that trains a campaign; it reads the place of the campaign, and what its user allowed it, from standard
input."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys

from ally.campaign.permissions import granted_keys
from ally.safe_path import SAFE_PATH

# Imports make no garbage, and looking for it takes a third of the time of a small training.
PROGRAM = """
import gc, json, sys
gc.disable()
sys.path[:] = filter(None, sys.path)
import ally.campaign.training.run
from ally.campaign import Campaign
gc.freeze()
gc.enable()
from ally.campaign.permissions import grant_keys
given = json.load(sys.stdin)
grant_keys(given["campaign"], given["allowed"])
with Campaign.open(given["place"]) as campaign:
    campaign.training.while_due(now="--now" in sys.argv)
"""

_children: dict[str, subprocess.Popen[bytes]] = {}
"""By place. Kept so that none becomes a zombie and only one runs at a time."""


@atexit.register
def _let_go() -> None:
    """The children outlive this process on purpose; without this Python would warn about each."""
    for process in _children.values():
        if process.poll() is None:
            process.returncode = 0


def start(place: str, id: str, *, now: bool = False, threads: int | None = None) -> bool:
    """Start a training process that outlives this one, unless one started here is still running; returns whether it
    did. With `now` it trains even if no training is due."""
    before = _children.get(place)
    if before is not None and before.poll() is None:
        return False
    cores = os.cpu_count() or 1
    # A campaign may come from a larger machine, or from somebody who means to keep this one busy.
    count = os.environ.get("OMP_NUM_THREADS", max(1, cores - 1)) if threads is None else min(threads, cores)
    # The place goes to standard input: a URL may hold a password, and others can read the arguments of a process.
    process = subprocess.Popen(
        [sys.executable, SAFE_PATH, "-c", PROGRAM, *(["--now"] if now else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": str(count)},
    )
    assert process.stdin is not None
    given = {"place": place, "campaign": id, "allowed": granted_keys(id)}
    process.stdin.write(json.dumps(given).encode())
    process.stdin.close()
    _children[place] = process
    return True
