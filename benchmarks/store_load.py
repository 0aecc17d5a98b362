"""Many annotators at once: are answers lost, samples handed out twice, or locks seen, and how long do calls take?

    python benchmarks/store_load.py [--processes 32] [--answers 10000] [--backend sqlite postgresql] [--batch 5]

Every process asks for a batch, answers it and asks again, without a pause, until all answers are given. Nobody labels so fast: the
latencies are those of a store that is never idle.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from ally.store import NewSample, create
from ally.store import open as open_store
from store_clients import annotate, start
from store_history import read, violations
from store_kill import place


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(seconds)
    at = {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in (("50", 0.5), ("95", 0.95), ("99", 0.99))}
    return {name: round(1000 * value, 1) for name, value in {**at, "max": ordered[-1]}.items()}


def run(url: str, folder: Path, processes: int, answers: int, batch: int) -> dict[str, object]:
    """Figures of one backend; raises if a promise was broken or a process failed."""
    share = -(-answers // processes)
    create(url, {}, (NewSample(f"s{row}") for row in range((share + 2 * batch) * processes)), now=time.time()).close()
    logs = [folder / f"annotator{number}.log" for number in range(processes)]
    began = time.perf_counter()
    running = [start(partial(annotate, url, f"annotator{number}", log, batch, share)) for number, log in enumerate(logs)]
    failed = sum(os.waitpid(process, 0)[1] != 0 for process in running)
    took = time.perf_counter() - began
    if failed:
        raise SystemExit(f"{failed} of {processes} processes ended with an error; see above")
    history = [line for log in logs for line in read(log)]
    with open_store(url) as store:
        record = list(store.answers())
        wrong = [*violations(history, record), *store.check()]
    if wrong:
        raise SystemExit("; ".join(wrong[:5]))
    return {
        "processes": processes,
        "answers": len(record),
        "seconds": round(took, 1),
        "answers_per_second": round(len(record) / took, 1),
        "ask_ms": percentiles([line.seconds for line in history if line.op == "asked"]),
        "answer_ms": percentiles([line.seconds for line in history if line.op == "done"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=5)
    parser.add_argument("--backend", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    arguments = parser.parse_args()
    for backend in arguments.backend:
        with tempfile.TemporaryDirectory() as folder, place(backend, Path(folder)) as (url, _):
            figures = run(url, Path(folder), arguments.processes, arguments.answers, arguments.batch)
        print(json.dumps({"backend": backend, **figures}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
