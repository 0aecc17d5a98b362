"""Many annotators at once: are answers lost, samples handed out twice, or locks seen, and how long do calls take?

    python benchmarks/campaign_load.py [--processes 32] [--answers 10000] [--backend sqlite postgresql] [--batch 5]

Every process asks for a batch, tells (now and then skips) it and asks again, without a pause, until all answers are
given. Nobody labels so
fast: the latencies are those of a campaign that is never idle.
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

import pandas as pd

from ally import Campaign
from store_clients import CLASSES, annotate, start
from store_history import read, violations
from store_server import places


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(seconds)
    at = {
        name: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        for name, share in (("50", 0.5), ("95", 0.95), ("99", 0.99))
    }
    return {name: round(1000 * value, 1) for name, value in {**at, "max": ordered[-1]}.items()}


def run(url: str, folder: Path, processes: int, answers: int, batch: int) -> dict[str, object]:
    """Figures of one backend; raises if a promise was broken or a process failed."""
    share = -(-answers // processes)
    rows = range((share + 2 * batch) * processes)
    frame = pd.DataFrame({"id": [f"s{row}" for row in rows], "x": [float(row) for row in rows]})
    Campaign.create(url, frame, classes=CLASSES, evaluate=0, automatic=False).close()
    logs = [folder / f"annotator{number}.log" for number in range(processes)]
    began = time.perf_counter()
    running = [
        start(partial(annotate, url, f"annotator{number}", log, batch, answers=share))
        for number, log in enumerate(logs)
    ]
    failed = sum(os.waitpid(process, 0)[1] != 0 for process in running)
    took = time.perf_counter() - began
    if failed:
        raise SystemExit(f"{failed} of {processes} processes ended with an error; see above")
    history = [line for log in logs for line in read(log)]
    with Campaign.open(url, frame) as campaign:
        record = list(campaign.answers.all())
        wrong = [*violations(history, record), *campaign.check()]
    if wrong:
        raise SystemExit("; ".join(wrong[:5]))
    return {
        "processes": processes,
        "answers": len(record),
        "seconds": round(took, 1),
        "answers_per_second": round(len(record) / took, 1),
        "ask_ms": percentiles([line.seconds for line in history if line.op == "asked"]),
        "tell_ms": percentiles([line.seconds for line in history if line.op == "done"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=5)
    parser.add_argument("--backend", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    arguments = parser.parse_args()
    for backend in arguments.backend:
        with tempfile.TemporaryDirectory() as folder, places(backend, Path(folder)) as (new, _):
            figures = run(new(), Path(folder), arguments.processes, arguments.answers, arguments.batch)
        print(json.dumps({"backend": backend, **figures}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
