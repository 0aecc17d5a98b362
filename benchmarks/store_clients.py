"""Programs that use a store from processes of their own and write down what they saw: annotators, and a writer of models.

Processes are forked from one that has everything imported and no store open, so that starting one costs milliseconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ally.errors import StoreUnreachable
from ally.store import Measure, NewAnswer, Ranked, Store
from ally.store import open as open_store
from store_history import Line, read

LEASE = 5.0


class Log:
    """A file of lines; an acknowledged answer is noted on disk before the next call."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, line: Line) -> None:
        os.write(self._file, json.dumps(asdict(line)).encode() + b"\n")
        if line.op == "done":
            os.fsync(self._file)


def trim(path: Path) -> None:
    """Cuts off a line that was being written when its writer was killed."""
    if path.exists():
        data = path.read_bytes()
        os.truncate(path, data.rfind(b"\n") + 1)


class Annotator:
    """Asks and answers in turn. Killed and started again on the same log, it goes on with the call it was in, under the same key."""

    def __init__(self, url: str, name: str, log: Path, batch: int, lease: float = LEASE) -> None:
        self.url, self.name, self.batch, self.lease = url, name, batch, lease
        trim(log)
        past = read(log)
        self.done = sum(line.op == "done" for line in past)
        self.unsure = next((line for line in past if line.op == "sending" and line.key == self._key), None)
        self.log = Log(log)

    @property
    def _key(self) -> str:
        return f"{self.name}-{self.done}"

    def turn(self, store: Store) -> int:
        """One query and its answers; how many answers were acknowledged."""
        sending = self.unsure or self._ask(store)
        if sending is None:
            # Everything of this query was taken over by others: the key is used up.
            self.log.add(Line("done", self.name, self._key, time.time(), 0, ()))
            self.done += 1
            return 0
        if not self.unsure:
            self.log.add(sending)
        began = time.time()
        new = [NewAnswer(sample, sending.value) for sample in sending.samples]
        receipt = store.answer(self.name, began, new, sending.query, key=sending.key)
        took = time.time() - began
        self.log.add(Line("done", self.name, sending.key, began, sending.query, sending.samples, 0.0, sending.value, receipt.numbers, took))
        self.done += 1
        self.unsure = None
        return len(receipt.numbers)

    def _ask(self, store: Store) -> Line | None:
        now = time.time()
        query = store.ask(self.name, self.batch, now, self.lease, key=self._key, at_most=True)
        took = time.time() - now
        if not query.samples:
            return None
        ids = tuple(query.ids)
        self.log.add(Line("asked", self.name, self._key, now, query.number, ids, query.until, seconds=took))
        return Line("sending", self.name, self._key, time.time(), query.number, ids, value=f"label {self.done % 3}")


def annotate(url: str, name: str, log: Path, batch: int, answers: int | None = None) -> None:
    """Until `answers` were acknowledged, or for ever."""
    given = 0
    while answers is None or given < answers:
        # The server may be restarted at any time. What was under way is repeated under its key, from the log.
        with suppress(StoreUnreachable), open_store(url) as store:
            annotator = Annotator(url, name, log, batch)
            while answers is None or given < answers:
                given += annotator.turn(store)
            return
        time.sleep(0.1)


def write_models(url: str, seed: int, samples: int, length: int) -> None:
    """Models with rankings of `length` samples, one after the other, for ever."""
    rng = random.Random(seed)
    while True:
        with suppress(StoreUnreachable), open_store(url) as store:
            while True:
                ranking = [Ranked(row, 1.0, {"dual": 0.5}) for row in rng.sample(range(samples), length)]
                seen = store.count(time.time()).answers
                weights, figures = rng.randbytes(50_000), [Measure("accuracy", 0.5)]
                store.put_model(time.time(), seen=seen, labels=seen, weights=weights, ranking=ranking, measures=figures)
        time.sleep(0.1)


def start(work: Callable[[], None]) -> int:
    """Runs `work` in a forked process; its number. An error of it is printed, and is not an end by signal."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def kill(process: int) -> bool:
    """SIGKILL; whether it was still running well until then."""
    os.kill(process, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])
