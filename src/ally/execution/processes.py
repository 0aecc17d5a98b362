"""What processes that work for another have in common."""

from __future__ import annotations

import multiprocessing.connection
import os
import pickle
import threading
import time

WATCH = "ally parent"
"""The name of the thread that waits for the parent."""
POLL = 1.0
"""Seconds between looks at a parent that is not Python's own."""


def end_with_parent() -> None:
    """From now on this process ends when the one that started it does, however that ends. To say so again changes
    nothing."""
    if not any(thread.name == WATCH for thread in threading.enumerate()):
        threading.Thread(target=_wait_for_parent, name=WATCH, daemon=True).start()


def _wait_for_parent() -> None:
    parent, number = multiprocessing.parent_process(), os.getppid()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
    else:
        while os.getppid() == number:
            time.sleep(POLL)
    os._exit(1)


def sendable(error: Exception) -> Exception:
    """The error, or its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
