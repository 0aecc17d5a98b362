"""A campaign over a table of a million rows: creation, asking and telling, status, one training, and asking while a
worker trains.

    python benchmarks/campaign_million.py [--rows 1000000] [--compare 10000] [--backend sqlite postgresql]

Each step is a process of its own, so that its peak memory is its own: that of a campaign with few rows
(`--compare`) is what the imports and one piece of everything take, and the difference is what the rows add.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ally import Campaign
from store_server import places

CALLS = 20
ASKED = 50
FEATURES = 10
PIECE = 50_000


def write_table(path: Path, rows: int) -> None:
    """A CSV file with an id that ends with the label, and columns that tell it."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(["id", *(f"x{number}" for number in range(FEATURES))]) + "\n")
        for start in range(0, rows, PIECE):
            values = rng.normal(size=(min(PIECE, rows - start), FEATURES)).round(4)
            labels = np.where(values[:, 0] + values[:, 1] * values[:, 2] > 0, "yes", "no").tolist()
            texts = (",".join(map(str, line)) for line in values.tolist())
            file.writelines(
                f"{start + row:07d}-{label},{text}\n"
                for row, (label, text) in enumerate(zip(labels, texts, strict=True))
            )


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def milliseconds(seconds: list[float]) -> dict[str, float]:
    return {
        "median": round(1000 * statistics.median(seconds), 1),
        "max": round(1000 * max(seconds), 1),
        "calls": len(seconds),
    }


def label_some(campaign: Campaign, asks: list[float], tells: list[float]) -> None:
    took, query = clocked(lambda: campaign.ask(ASKED, annotator="ann"))
    asks.append(took)
    tells.append(clocked(lambda: campaign.tell(query, {id: id.split("-")[1] for id in query.ids}))[0])


def create(url: str, source: Path) -> dict[str, Any]:
    took, campaign = clocked(lambda: Campaign.create(url, source, classes=["yes", "no"], automatic=False))
    campaign.close()
    return {"seconds": round(took, 1)}


def label(url: str, source: Path) -> dict[str, Any]:
    """Asking and telling as a page or a command does it, without the source; and how far the campaign is."""
    opened, campaign = clocked(lambda: Campaign.open(url))
    asks: list[float] = []
    tells: list[float] = []
    for _ in range(CALLS):
        label_some(campaign, asks, tells)
    status = [clocked(campaign.status)[0] for _ in range(5)]
    campaign.close()
    figures = {"ask_ms": milliseconds(asks), "tell_ms": milliseconds(tells), "status_ms": milliseconds(status)}
    return {"open_ms": round(1000 * opened, 1), **figures}


def show(url: str, source: Path) -> dict[str, Any]:
    """The first sample that is shown costs a walk through the table, the others do not."""
    with Campaign.open(url) as campaign:
        query = campaign.ask(CALLS, annotator="bob")
        seconds = [clocked(partial(campaign.show, id))[0] for id in query.ids]
        campaign.release(query)
    return {"first_seconds": round(seconds[0], 2), "others_ms": milliseconds(seconds[1:])}


def retrain(url: str, source: Path) -> dict[str, Any]:
    with Campaign.open(url) as campaign:
        took, _ = clocked(campaign.retrain)
        model = campaign.status().model
    assert model is not None
    return {
        "seconds": round(took, 1),
        "labels": model.labels,
        "accuracy": model.value,
        "evaluated_on": model.evaluated_on,
    }


def meanwhile(url: str, source: Path) -> dict[str, Any]:
    """Asking and telling while a worker trains, from when it has begun until its first model serves."""
    asks: list[float] = []
    tells: list[float] = []
    status: list[float] = []
    with Campaign.open(url) as campaign:
        before = campaign.status().model
        began = time.perf_counter()
        campaign.retrain(wait=False)
        while (now := campaign.status()).model == before:
            if now.training_state == "running":
                label_some(campaign, asks, tells)
                status.append(clocked(campaign.status)[0])
            elif now.training_state in ("failed", "interrupted"):
                raise SystemExit(f"the training {now.training_state}: {now.training_error}")
            time.sleep(0.5)
        took = time.perf_counter() - began
        # The worker goes on with the new answers; the place is removed when it is done.
        while campaign.status().training_state == "running":
            time.sleep(0.5)
    figures = {"ask_ms": milliseconds(asks), "tell_ms": milliseconds(tells), "status_ms": milliseconds(status)}
    return {"worker_seconds": round(took, 1), **figures}


STEPS: dict[str, Callable[[str, Path], dict[str, Any]]] = {
    "create": create,
    "label_without_model": label,
    "show": show,
    "retrain": retrain,
    "label_by_ranking": label,
    "label_meanwhile": meanwhile,
}


def step(name: str, url: str, source: Path) -> dict[str, Any]:
    """Figures of a step in a process of its own."""
    arguments = [sys.executable, __file__, "--step", name, "--place", url, "--source", str(source)]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed; see above")
    return dict(json.loads(done.stdout))


def run(backend: str, rows: int, names: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, places(backend, Path(folder)) as (new, _):
        source = Path(folder) / "table.csv"
        write_table(source, rows)
        url = new()
        return {"backend": backend, "rows": rows, **{name: step(name, url, source) for name in names}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--compare", type=int, default=10_000, help="rows of the small campaign whose memory is compared; 0 for none"
    )
    parser.add_argument("--backend", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite"])
    parser.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS), help="the first is create")
    parser.add_argument("--step", choices=list(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        figures = STEPS[arguments.step](arguments.place, arguments.source)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(
            json.dumps(
                {
                    **figures,
                    "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
                    "peak_mib": round(used.ru_maxrss / 1024),
                }
            )
        )
        return
    for backend in arguments.backend:
        for rows in (arguments.compare, arguments.rows):
            if rows:
                print(json.dumps(run(backend, rows, arguments.steps)), flush=True)


if __name__ == "__main__":
    main()
