"""What a query costs on n samples and W workers, by a model of its passes and messages, and by a simulation of workers
that are slow or lost.

    python benchmarks/scale_model.py [--costs benchmarks/results/scale.json]

Numbers of calls and bytes follow from the code alone; the first table compares them with those that
``benchmarks/scale.py`` counted. Seconds of a row, a pick and a call are those it measured. A worker holds up to `SHARD`
rows. The simulation goes from call to call: everybody waits for the slowest; a worker that is lost is started again,
reads and looks at its shard, and repeats the calls so far.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.base import BLOCK, CHUNK_BYTES
from ally.learning.held import STEPS
from ally.selection.kcenter import OFFERED

SHARD = 4_000_000
"""Rows per worker."""
SPREAD = 0.25
"""Standard deviation of the logarithm of how long workers take for the same work."""
SLOW, SLOWER = 0.01, 3.0
"""A share of the workers of any call takes so many times as long."""
LIFE = 1000 * 3600.0
"""Seconds between losses of a worker, on average."""
NETWORK = 1.25e9
"""Bytes per second into and out of the driver."""
CLASSES, PICKS, ACTORS = 5, 100, 2
"""Of the measurements."""
RESULTS = Path(__file__).parent / "results" / "scale.json"


@dataclass(frozen=True)
class Plan:
    """What a strategy adds to the passes that all of them make, for b picks of rows of d numbers."""

    name: str
    calls: Callable[[int], int]
    """Of all workers: scores, kernels brought, begun and ended, offers, picks, rows read for the answer."""
    scored: bool
    """Whether a score of each sample comes to the driver."""
    ranked: bool
    """Whether the scores go back with a kernel."""
    passes: Callable[[int], float]
    """Distances to each row, at most."""
    rows: Callable[[int], float] = lambda b: 0.0
    """Rows that come to the driver."""


PLANS = {
    plan.name: plan
    for plan in (
        Plan("margin", lambda b: 7, True, True, lambda b: 0.0),
        Plan("ally-clusters", lambda b: 4, True, False, lambda b: 0.0, lambda b: 20.0 * b),
        Plan("coreset", lambda b: 6 + math.ceil(b / (ACTORS * OFFERED)) - 1, False, True, float, float),
        Plan("badge", lambda b: 6 + 2 * b, False, True, float, float),
    )
}
"""Coreset decides as many picks per call as two shards offer; more shards offer more, so this is at most what it takes
if the offers hold."""


def workers(n: int) -> int:
    return max(1, math.ceil(n / SHARD))


def calls(plan: Plan, n: int, b: int, d: int, w: int) -> int:
    """The first pass in chunks, the second in steps and its facts, then the strategy's own."""
    chunk = math.ceil(max(1, CHUNK_BYTES // (4 * d)) / BLOCK) * BLOCK
    return math.ceil(math.ceil(n / w) / chunk) + STEPS + 1 + plan.calls(b)


def received(plan: Plan, n: int, b: int, d: int) -> float:
    """Bytes that come to the driver: marks of copies (16), predictions (8), scores (8), sums of each block, rows."""
    return n * (24.0 + 8 * plan.scored) + math.ceil(n / BLOCK) * 16 * d + plan.rows(b) * 4 * d


def sent(plan: Plan, n: int) -> float:
    """Bytes that the driver sends: row numbers for each pass (8), and scores (8)."""
    return n * (16.0 + 8 * plan.ranked)


def flops(plan: Plan, n: int, b: int, d: int) -> float:
    """Sums and squares, standardising, a linear head, and distances if none can be spared."""
    return n * (6.0 * d + 2 * d * CLASSES + 3 * d * plan.passes(b))


@dataclass(frozen=True)
class Costs:
    """Seconds on one core."""

    row: float
    """For a worker, to read a row twice, mark it, standardise it and look at it."""
    driver: float
    """For the driver, to compare the marks of a row and rank it."""
    pick: dict[str, float]
    """Of one pick, for each row, by strategy."""
    call: float
    """A call of all workers."""
    start: float
    """Of a worker."""

    @classmethod
    def of(cls, measured: Sequence[dict[str, Any]]) -> Costs:
        """Rows from pools of several sizes, picks from what a strategy takes beyond margin on the same pool."""
        on_ray = [one for one in measured if one["engine"] == "ray" and "driver_cpu_seconds" in one]
        sizes = [one for one in on_ray if one["strategy"] == "margin" and one["columns"] == 64]
        n = [one["rows"] for one in sizes]
        driver = np.polyfit(n, [one["driver_cpu_seconds"] for one in sizes], 1)[0]
        row = np.polyfit(n, [one["cpu_seconds"] - one["driver_cpu_seconds"] for one in sizes], 1)[0]
        wide = {one["strategy"]: one for one in on_ray if one["columns"] == 128}
        pick = {
            name: max(0.0, wide[name]["cpu_seconds"] - wide["margin"]["cpu_seconds"]) / (wide[name]["rows"] * PICKS)
            for name in wide
            if PLANS[name].passes(PICKS)
        }
        call = float(np.median([one["call_seconds"] for one in on_ray if "call_seconds" in one]))
        return cls(float(row), float(driver), pick, call, float(np.median([one["start_seconds"] for one in on_ray])))


def _parts(plan: Plan, costs: Costs, n: int, b: int, d: int) -> tuple[float, float, float, float]:
    """Seconds of the passes and of the picks in each worker, of the driver, and of a call."""
    w = workers(n)
    traffic = (received(plan, n, b, d) + sent(plan, n)) / NETWORK
    picks = n / w * plan.passes(b) * costs.pick.get(plan.name, 0.0)
    return n / w * costs.row, picks, n * costs.driver + traffic, costs.call * (1 + math.log2(w))


def seconds(plan: Plan, costs: Costs, n: int, b: int, d: int) -> float:
    """Without anybody slow or lost."""
    rows, picks, driver, call = _parts(plan, costs, n, b, d)
    return rows + picks + driver + calls(plan, n, b, d, workers(n)) * call


@dataclass(frozen=True)
class Outcome:
    seconds: float
    lost: float
    """Workers, on average over runs."""


def simulate(plan: Plan, costs: Costs, n: int, b: int, d: int, runs: int, seed: int = 0) -> Outcome:
    """The mean over runs."""
    rng, w = np.random.default_rng(seed), workers(n)
    rows, picks, driver, call = _parts(plan, costs, n, b, d)
    own = plan.calls(b)
    before = calls(plan, n, b, d, w) - own
    events = [rows / before] * before + [picks / own] * own
    totals, losses = [], []
    for _ in range(runs):
        clock, lost, done = driver, 0, 0.0
        for number, work in enumerate(events):
            taken = work * np.exp(rng.normal(scale=SPREAD, size=w) - SPREAD**2 / 2)
            taken *= np.where(rng.random(w) < SLOW, SLOWER, 1.0)
            step, done = float(taken.max()) + call, done + work
            waiting = step
            while (gone := int(rng.poisson(w * waiting / LIFE))) > 0:
                lost += gone
                # Those that are lost recover at the same time; meanwhile others may be lost.
                waiting = costs.start + done + call * number
                step += waiting
            clock += step
        totals.append(clock)
        losses.append(lost)
    return Outcome(float(np.mean(totals)), float(np.mean(losses)))


def check(measured: Sequence[dict[str, Any]], costs: Costs) -> None:
    """What the model says beside what was counted."""
    print("| strategy | pool | calls | counted | to the driver, MB | counted | from it, MB | counted |")
    print("|---|---|---|---|---|---|---|---|")
    for one in measured:
        if one["engine"] == "ray" and "calls" in one and one["strategy"] in PLANS:
            plan, n, d = PLANS[one["strategy"]], one["rows"], one["columns"]
            up, down = received(plan, n, PICKS, d) / 1e6, sent(plan, n) / 1e6
            print(
                f"| {plan.name} | {n} × {d} | {calls(plan, n, PICKS, d, ACTORS)} | {one['calls']} | {up:.1f} | "
                f"{one['received'] / 1e6:.1f} | {down:.1f} | {one['sent'] / 1e6:.1f} |"
            )
    print(f"\n{costs}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--costs", type=Path, default=RESULTS)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    measured = json.loads(options.costs.read_text())
    costs, b, d = Costs.of(measured), options.batch, options.columns
    check(measured, costs)
    print(f"{d} columns, batches of {b}\n")
    print("| strategy | n | workers | calls | to the driver | from it | flops | model | simulated | lost |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for plan in PLANS.values():
        for power in range(6, 11):
            n = 10**power
            w = workers(n)
            number = calls(plan, n, b, d, w)
            found = simulate(plan, costs, n, b, d, max(2, min(options.runs, int(2e7 / (w * number)))))
            up, down = received(plan, n, b, d) / 1e9, sent(plan, n) / 1e9
            print(
                f"| {plan.name} | 10^{power} | {w} | {number} | {up:.3g} GB | {down:.3g} GB | "
                f"{flops(plan, n, b, d):.2g} | {seconds(plan, costs, n, b, d):.3g} s | {found.seconds:.3g} s | "
                f"{found.lost:.2g} |"
            )


if __name__ == "__main__":
    main()
