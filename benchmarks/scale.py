"""Queries of large pools from disk, here and on Ray: time, memory of the driver, messages.

    python benchmarks/scale.py --rows 1000000 --columns 128
    python benchmarks/scale.py --rows 1250000 2500000 5000000 10000000 --columns 64 --strategies margin

Every query runs in a process of its own, on a memory map of random features with a linear model. Start-up of Ray and
of its actors is counted apart. CPU time is that of the driver and of the actors together: it depends less than the
clock on what else the machine does. With ``--reads`` the rows that are read are counted, by whoever reads them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ally
from ally.data import Source, as_source
from ally.execution import ray as on_ray
from ally.execution.ray import RayCrew, RayEngine
from ally.learning.linear import LinearLearner
from ally.loop import Loop
from ally.testing.engine import Counter
from ally.types import AnyArray, IntArray

LABELS, CLASSES, BATCH = 500, 5, 100
RUN = 2**16


def make_pool(path: Path, rows: int, columns: int) -> None:
    """Mixtures of Gaussians in float32; the classes of the first `LABELS` rows are in ``y.npy``."""
    X = np.lib.format.open_memmap(path / "X.npy", "w+", np.float32, (rows, columns))
    centres = np.random.default_rng(0).normal(size=(4 * CLASSES, columns)) * 0.7
    for start in range(0, rows, RUN):
        rng = np.random.default_rng((1, start))
        kind = rng.integers(len(centres), size=min(RUN, rows - start))
        X[start : start + RUN] = centres[kind] + rng.standard_normal((len(kind), columns), np.float32)
        if start == 0:
            np.save(path / "y.npy", kind[:LABELS] % CLASSES)
    X.flush()


class CountedRows:
    """A memory map whose readers each keep count, in a file of their own, of the rows they have read."""

    by_path = True

    def __init__(self, source: Source, folder: Path) -> None:
        self._source, self._folder = source, folder

    @property
    def shape(self) -> tuple[int, ...]:
        return self._source.shape

    def __len__(self) -> int:
        return len(self._source)

    def read(self, rows: IntArray) -> AnyArray:
        with (self._folder / f"{os.getpid()}.rows").open("a") as file:
            file.write(f"{len(rows)}\n")
        return self._source.read(rows)

    def column(self, number: int) -> str:
        return self._source.column(number)


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(process: int | str) -> int:
    """Most memory that a process has had, in bytes, without pages of files."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def size_of(value: Any) -> int:
    """About how many bytes a message holds."""
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return int(value.nbytes)
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    return sum(map(size_of, value)) if isinstance(value, (list, tuple)) else 8


@dataclass
class Traffic:
    """What passes between the driver and its actors: calls of any number of actors, and bytes in parts, calls and
    answers. What is shared (the pool's place, the learner) is sent once and not counted."""

    calls: int = 0
    sent: int = 0
    received: int = 0

    def watch(self) -> None:
        """Counts for all crews of this process."""
        lengths: dict[Any, int] = {}
        message, call, start = on_ray._message, RayCrew._call, RayCrew._start

        def counted_message(method: str, args: tuple[Any, ...]) -> Any:
            found = message(method, args)
            lengths[found] = len(found) if isinstance(found, bytes) else size_of(args)
            return found

        def counted_call(crew: RayCrew, messages: Any) -> list[Any]:
            self.calls += 1
            self.sent += sum(lengths[one] for own in messages.values() for _, one in own)
            found = call(crew, messages)
            self.received += size_of(found)
            lengths.clear()
            return found

        def counted_start(crew: RayCrew, host: int) -> Any:
            self.sent += size_of([crew._parts[number] for number in crew._numbers(host)])
            return start(crew, host)

        on_ray._message, RayCrew._call, RayCrew._start = counted_message, counted_call, counted_start  # type: ignore


def call_seconds(actors: int, calls: int = 200) -> float:
    """What a call of all actors takes that gives them nothing to do."""
    with RayEngine(workers=actors).crew(range(actors), partial(Counter, 0)) as crew, crew.passing():
        crew.each("part")
        started = time.perf_counter()
        for _ in range(calls):
            crew.each("part")
    return (time.perf_counter() - started) / calls


def one(folder: Path, engine: str, strategy: str, actors: int, reads: bool) -> dict[str, Any]:
    """A query in this process."""
    X, known = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    y = np.full(len(X), -1)
    y[: len(known)] = known
    told: dict[str, Any] = {"rows": X.shape[0], "columns": X.shape[1], "strategy": strategy, "engine": engine}
    pids: list[int] = []
    traffic = Traffic()
    if engine == "ray":
        started = time.perf_counter()
        on_ray.connect()
        hosts = on_ray.hosts(actors)
        pids = on_ray._ray().get([actor.ready.remote() for actor in hosts.actors])
        told["start_seconds"] = time.perf_counter() - started
        told["call_seconds"] = call_seconds(actors)
        traffic.watch()
    where: Any = RayEngine(workers=actors) if engine == "ray" else "local"
    highest = [0]
    stages: dict[str, float] = {}
    started = time.perf_counter()

    def watch(stage: str, done: int, total: int) -> None:
        highest[0] = max(highest[0], peak("self"))
        stages[stage] = time.perf_counter() - started

    own, theirs = time.process_time(), sum(map(cpu_seconds, pids))
    loop = Loop(
        CountedRows(as_source(X), folder) if reads else X,
        y,
        strategy=strategy,
        model=LinearLearner(),
        missing_label=-1,
        random_state=0,
        engine=where,
        hygiene=ally.Hygiene(),
        progress=watch,
    )
    found = loop.ask(BATCH)
    told["seconds"] = time.perf_counter() - started
    told["driver_cpu_seconds"] = time.process_time() - own
    told["cpu_seconds"] = told["driver_cpu_seconds"] + sum(map(cpu_seconds, pids)) - theirs
    watch("end", 0, 0)
    told |= {"driver_bytes": highest[0], "ids": found.ids.tolist(), "stages": stages, **asdict(traffic)}
    if reads:
        counts = [int(line) for path in folder.glob("*.rows") for line in path.read_text().split()]
        told["times_read"] = sum(counts) / len(X)
    told["peak_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return told


def measured(folder: Path, engine: str, strategy: str, actors: int, reads: bool) -> dict[str, Any]:
    for path in folder.glob("*.rows"):
        path.unlink()
    command = [sys.executable, __file__, "--one", engine, "--folder", str(folder), "--strategies", strategy]
    command += ["--reads"] if reads else []
    done = subprocess.run([*command, "--actors", str(actors)], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def exponent(results: Sequence[dict[str, Any]]) -> float:
    """Of CPU time as a power of the number of rows."""
    x, y = (np.log([one[name] for one in results]) for name in ("rows", "cpu_seconds"))
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[128])
    parser.add_argument("--strategies", nargs="+", default=["ally", "margin", "coreset"])
    parser.add_argument("--engines", nargs="+", default=["local", "ray"])
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--reads", action="store_true", help="count the rows that are read")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.folder, options.one, options.strategies[0], options.actors, options.reads)))
        return
    results = []
    for columns in options.columns:
        for rows in options.rows:
            with tempfile.TemporaryDirectory() as place:
                make_pool(Path(place), rows, columns)
                for strategy in options.strategies:
                    ids = None
                    for engine in options.engines:
                        found = measured(Path(place), engine, strategy, options.actors, options.reads)
                        ids = ids or found["ids"]
                        assert found["ids"] == ids, f"{strategy} on {engine} gave other ids"
                        del found["ids"]
                        results.append(found)
                        print(json.dumps(found), flush=True)
    for strategy in options.strategies:
        for engine in options.engines:
            own = [one for one in results if (one["strategy"], one["engine"]) == (strategy, engine)]
            if len(options.rows) > 1:
                print(f"{strategy} on {engine}: CPU time grows as n^{exponent(own):.2f}")
        both = [[one for one in results if (one["strategy"], one["engine"]) == (strategy, e)] for e in ("local", "ray")]
        for here, there in zip(*both, strict=False):
            ratio = there["cpu_seconds"] / here["cpu_seconds"]
            print(f"{strategy}, {here['rows']} × {here['columns']}: CPU time on Ray is {ratio:.2f} times that here")
    assert all(math.isfinite(one["seconds"]) for one in results)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
