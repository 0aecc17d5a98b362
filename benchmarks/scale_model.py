"""What a query costs on n samples and W workers, by a model of its passes and messages, and by a simulation of workers
that are slow or lost.

    python benchmarks/scale_model.py [--costs benchmarks/results/scale.json]

The costs of a row, of a distance and of a message are those that ``benchmarks/scale.py`` measured. A worker holds up to
`SHARD` rows. The simulation goes round by round: everybody waits for the slowest; a worker that is lost is started
again, reads and looks at its shard, and repeats the rounds so far.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SHARD = 4_000_000
"""Rows per worker."""
SPREAD = 0.25
"""Standard deviation of the logarithm of how long workers take for the same work."""
SLOW, SLOWER = 0.01, 3.0
"""A share of the workers of any round takes so many times as long."""
LIFE = 1000 * 3600.0
"""Seconds between losses of a worker, on average."""
POOL, PICKS = (1_000_000, 128), 100
"""Of the measurements that costs are taken from."""
MESSAGE = 2e-3
"""Seconds of a call of all workers: assumed."""
NETWORK = 1.25e9
"""Bytes per second into and out of the driver."""
RESULTS = Path(__file__).parent / "results" / "scale.json"


@dataclass(frozen=True)
class Costs:
    """Seconds on one core."""

    row: float
    """To read a row twice, mark it, standardise it and look at it."""
    pick: float
    """Of one pick, for each row: a distance, where it cannot be spared."""
    message: float
    """A call of all workers."""
    start: float
    """Of a worker."""


@dataclass(frozen=True)
class Plan:
    """A strategy as the driver sees it, for b picks of n samples with rows of d numbers."""

    name: str
    rounds: Callable[[int], int]
    """Calls of all workers that a batch takes."""
    passes: Callable[[int], float]
    """Work in units of one pick over all rows."""
    up: Callable[[int, int, int], float]
    """Bytes that come to the driver, beyond 40 for each sample."""


PLANS = (
    Plan("margin", lambda b: 1, lambda b: 0.0, lambda n, b, d: 0.0),
    Plan("ally-clusters", lambda b: 2, lambda b: 0.0, lambda n, b, d: 20.0 * b * 4 * d),
    Plan("coreset", lambda b: b, lambda b: float(b), lambda n, b, d: 4.0 * b * d),
    Plan("badge", lambda b: 2 * b, lambda b: float(b), lambda n, b, d: 4.0 * b * d),
)


def workers(n: int) -> int:
    return max(1, math.ceil(n / SHARD))


def fixed_rounds() -> int:
    """Calls before a selection begins: 20 to look, as many to read, and a few."""
    return 45


def seconds(plan: Plan, costs: Costs, n: int, b: int, d: int) -> float:
    """Without anybody slow or lost."""
    w = workers(n)
    compute = n / w * (costs.row + plan.passes(b) * costs.pick)
    calls = (fixed_rounds() + plan.rounds(b)) * costs.message * (1 + math.log2(w))
    return compute + calls + bytes_to_driver(plan, n, b, d) / NETWORK


def bytes_to_driver(plan: Plan, n: int, b: int, d: int) -> float:
    """Marks (16 bytes), predictions, scores and sums of blocks, and what the selection sends."""
    return 40.0 * n + n / 1024 * 16 * d + plan.up(n, b, d)


@dataclass(frozen=True)
class Outcome:
    seconds: float
    lost: float
    """Workers, on average over runs."""


def simulate(plan: Plan, costs: Costs, n: int, b: int, d: int, runs: int, seed: int = 0) -> Outcome:
    """The mean over runs."""
    rng, w = np.random.default_rng(seed), workers(n)
    row, pick = n / w * costs.row, n / w * plan.passes(b) * costs.pick
    rounds = [row / fixed_rounds()] * fixed_rounds() + [pick / plan.rounds(b)] * plan.rounds(b)
    latency = costs.message * (1 + math.log2(w))
    totals, losses = [], []
    for _ in range(runs):
        clock, lost, done = bytes_to_driver(plan, n, b, d) / NETWORK, 0, 0.0
        for work in rounds:
            own = work * np.exp(rng.normal(scale=SPREAD, size=w) - SPREAD**2 / 2)
            own *= np.where(rng.random(w) < SLOW, SLOWER, 1.0)
            step, done = float(own.max()) + latency, done + work
            waiting = step
            while (gone := int(rng.poisson(w * waiting / LIFE))) > 0:
                lost += gone
                # Those that are lost recover at the same time; meanwhile others may be lost.
                waiting = costs.start + done + latency * len(rounds)
                step += waiting
            clock += step
        totals.append(clock)
        losses.append(lost)
    return Outcome(float(np.mean(totals)), float(np.mean(losses)))


def costs_of(path: Path) -> tuple[Costs, int]:
    """From measurements of one pool, and its columns: a row on Ray, a pick by what coreset takes beyond margin."""
    measured = [one for one in json.loads(path.read_text()) if (one["rows"], one["columns"]) == POOL]
    found = {(one["strategy"], one["engine"]): one for one in measured}
    on_ray, margin, coreset = found["margin", "ray"], found["margin", "local"], found["coreset", "local"]
    n = on_ray["rows"]
    pick = (coreset["cpu_seconds"] - margin["cpu_seconds"]) / (n * PICKS)
    return Costs(on_ray["cpu_seconds"] / n, pick, MESSAGE, on_ray["start_seconds"]), on_ray["columns"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--costs", type=Path, default=RESULTS)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    costs, d = costs_of(options.costs)
    print(f"{costs}, {d} columns, batches of {options.batch}\n")
    print("| strategy | n | workers | rounds | to the driver | model | simulated | lost |")
    print("|---|---|---|---|---|---|---|---|")
    for plan in PLANS:
        for power in range(6, 11):
            n, b = 10**power, options.batch
            runs = max(2, min(options.runs, int(2e7 / (workers(n) * plan.rounds(b)))))
            found = simulate(plan, costs, n, b, d, runs)
            size, calls = bytes_to_driver(plan, n, b, d), fixed_rounds() + plan.rounds(b)
            print(
                f"| {plan.name} | 10^{power} | {workers(n)} | {calls} | {size / 1e9:.3g} GB | "
                f"{seconds(plan, costs, n, b, d):.3g} s | {found.seconds:.3g} s | {found.lost:.2g} |"
            )


if __name__ == "__main__":
    main()
