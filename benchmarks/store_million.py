"""A pool of a million samples: creation, a ranking of all of them, and how long `ask` takes.

python benchmarks/store_million.py [--samples 1000000] [--backend sqlite postgresql]
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ally.store import NewAnswer, NewSample, Ranked, Store, create
from store_server import places

ASKS = 20


def clocked(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def asks(store: Store, kind: str) -> dict[str, float]:
    """Milliseconds of asking for 50 samples."""
    seconds = [clocked(lambda: store.ask("ann", 50, time.time(), 3600.0, kind=kind)) for _ in range(ASKS)]  # type: ignore[arg-type]
    return {"median": round(1000 * statistics.median(seconds), 1), "max": round(1000 * max(seconds), 1)}


def run(url: str, n: int) -> dict[str, Any]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures: dict[str, Any] = {"samples": n}
    began = time.perf_counter()
    store = create(url, {}, (NewSample(f"folder/{row:09d}.jpg") for row in range(n)), now=time.time())
    figures["create_seconds"] = round(time.perf_counter() - began, 1)
    figures["create_peak_mib"] = round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, 1)
    figures["ask_random_ms"] = asks(store, "random")

    meanwhile: list[float] = []
    end = threading.Event()

    def annotate() -> None:
        for number in itertools.count():
            if end.wait(0.2):
                return
            meanwhile.append(clocked(partial(store.ask, f"bob{number}", 50, time.time(), 3600.0)))

    thread = threading.Thread(target=annotate)
    thread.start()
    figures["rank_all_seconds"] = round(
        clocked(
            lambda: store.models.put(
                time.time(), seen=0, labels=0, ranking=(Ranked(row, 1.0 - row / n, {"dual": 0.5}) for row in range(n))
            )
        ),
        1,
    )
    end.set()
    thread.join()
    figures["ask_meanwhile_ms"] = {
        "median": round(1000 * statistics.median(meanwhile), 1),
        "max": round(1000 * max(meanwhile), 1),
    }
    figures["ask_ranked_ms"] = asks(store, "active")
    answered = n // 10
    began = time.perf_counter()
    for start in range(0, answered, 5000):
        store.answer(
            "eve",
            time.time(),
            [NewAnswer(f"folder/{row:09d}.jpg", "cat") for row in range(start, min(start + 5000, answered))],
        )
    figures["import_answers_per_second"] = round(answered / (time.perf_counter() - began))
    figures["ask_ranked_after_a_tenth_is_answered_ms"] = asks(store, "active")
    figures["count_seconds"] = round(clocked(lambda: store.count(time.time())), 2)
    figures["labels_seconds"] = round(clocked(store.answers.labels), 2)
    store.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--backend", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    arguments = parser.parse_args()
    for backend in arguments.backend:
        with tempfile.TemporaryDirectory() as folder, places(backend, Path(folder)) as (new, _):
            print(json.dumps({"backend": backend, **run(new(), arguments.samples)}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
