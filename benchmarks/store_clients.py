"""Programs that use a campaign from processes of their own: annotators, who write down what they saw, and a retrainer.

Processes are forked from one that has everything imported and no store open, so that starting one costs milliseconds.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from ally import SKIP, Campaign
from ally.campaign.training.schedule import LOCK, begin
from ally.errors import StoreUnreachable
from ally.store import Ranked, Store
from ally.store import open as open_store
from store_history import Line, read

CLASSES = ("no", "yes")
LONG = "long ranking"
_parent = 0


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
    """Asks and tells in turn, skips now and then, and takes back its oldest answers when more than `keep` stand.

    Killed and started again on the same log, it goes on with the call it was in, under the same key.
    """

    def __init__(self, name: str, log: Path, batch: int, keep: int | None) -> None:
        self.name, self.batch, self.keep = name, batch, keep
        trim(log)
        past = read(log)
        done = [line for line in past if line.op == "done"]
        undone = {line.undoes for line in done if line.call == "undo"}
        self.turns = len(done)
        self.standing = [number for line in done for number in line.numbers if number not in undone]
        self.unsure = next((line for line in past if line.op == "sending" and line.key == self._key), None)
        self.log = Log(log)

    @property
    def _key(self) -> str:
        return f"{self.name}-{self.turns}"

    def turn(self, campaign: Campaign) -> int:
        """One call that changes the record; how many answers were acknowledged."""
        sending = self.unsure or self._next(campaign)
        if not self.unsure:
            self.log.add(sending)
        began = time.time()
        numbers = self._send(campaign, sending)
        self.log.add(replace(sending, op="done", at=began, numbers=numbers, seconds=time.time() - began))
        self.turns += 1
        self.unsure = None
        self.standing = [*(number for number in self.standing if number != sending.undoes), *numbers]
        return len(numbers)

    def _next(self, campaign: Campaign) -> Line:
        if self.keep is not None and len(self.standing) > self.keep:
            return Line("sending", self.name, self._key, time.time(), 0, (), call="undo", undoes=self.standing[0])
        now = time.time()
        query = campaign.ask(self.batch, annotator=self.name, key=self._key, at_most=True)
        took = time.time() - now
        ids = tuple(query.ids)
        self.log.add(Line("asked", self.name, self._key, now, query.id, ids, query.until, seconds=took))
        call = "skip" if self.turns % 7 == 6 else "tell"
        value = None if self.turns % 7 > 4 else CLASSES[self.turns % 2]
        return Line("sending", self.name, self._key, time.time(), query.id, ids, value=value, call=call)

    def _send(self, campaign: Campaign, line: Line) -> tuple[int, ...]:
        if line.call == "undo":
            campaign.undo(annotator=self.name, number=line.undoes, key=line.key)
            return ()
        if not line.samples:
            # Everything of this query was taken over by others: the key is used up.
            return ()
        if line.call == "skip":
            return campaign.skip(line.samples, annotator=self.name, key=line.key).numbers
        answers = dict.fromkeys(line.samples, SKIP if line.value is None else line.value)
        return campaign.tell(line.query, answers, annotator=self.name, key=line.key).numbers


def annotate(
    url: str,
    name: str,
    log: Path,
    batch: int,
    *,
    answers: int | None = None,
    keep: int | None = None,
    pause: float = 0.0,
) -> None:
    """Until `answers` were acknowledged, or until it is killed; with random pauses between turns."""
    given = 0
    while wanted() and (answers is None or given < answers):
        # The server may be restarted at any time. What was under way is repeated under its key, from the log.
        with suppress(StoreUnreachable), Campaign.open(url) as campaign:
            annotator = Annotator(name, log, batch, keep)
            while wanted() and (answers is None or given < answers):
                given += annotator.turn(campaign)
                time.sleep(random.uniform(0.0, pause))
            return
        time.sleep(0.1)


def retrain(url: str) -> None:
    """Trains whenever a training is due, until it is killed."""
    while wanted():
        with suppress(StoreUnreachable), Campaign.open(url) as campaign:
            while wanted():
                campaign.training.while_due()
                time.sleep(0.02)
        time.sleep(0.1)


def write_long_rankings(url: str) -> None:
    """Models whose ranking is the whole pool in random order, until it is killed; weights are those of the newest
    model."""
    while wanted():
        with suppress(StoreUnreachable), open_store(url) as store:
            rows = [sample.row for sample in store.samples.all()]
            while wanted():
                with store.exclusive(LOCK, 5.0) as mine:
                    if mine:
                        _write_long_ranking(store, rows)
        time.sleep(0.1)


def _write_long_ranking(store: Store, rows: list[int]) -> None:
    model = store.models.newest()
    weights = None if model is None else store.models.weights(model.number)
    seen = 0 if model is None else model.seen
    report = {
        "begun": begin(store, time.time(), {"what": LONG}),
        "cold": LONG if weights is None else "",
        "ranking": len(rows),
    }
    ranking = [Ranked(row, 1.0, {"dual": 0.5}) for row in random.sample(rows, len(rows))]
    store.models.put(time.time(), seen=seen, labels=0, weights=weights, report=report, ranking=ranking)


def warm_up() -> None:
    """Loads what a training loads, so that forked processes have it from the start.

    Gradients are left out: a process forked from one that has computed any cannot compute its own.
    """
    import numpy as np
    import pandas as pd
    import torch

    torch.set_num_threads(1)
    frame = pd.DataFrame({"id": [f"s{row}" for row in range(40)], "x": np.arange(40.0)})
    with Campaign.create("memory", frame, automatic=False) as campaign:
        campaign.retrain()
        campaign.status()
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.zeros(2)
    torch.optim.Adam([weight]).step()
    # Collecting garbage would touch, and so copy, every page that a forked process shares.
    gc.collect()
    gc.freeze()


def start(work: Callable[[], None]) -> int:
    """Runs `work` in a forked process; its number. An error of it is printed, and is not an end by signal."""
    global _parent
    parent = os.getpid()
    process = os.fork()
    if process:
        return process
    _parent = parent
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        random.seed()
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wanted() -> bool:
    """Whether the process that started this one is still there; without it, nobody would end this one."""
    return os.getppid() == _parent


def kill(process: int) -> bool:
    """SIGKILL; whether it was still running well until then."""
    os.kill(process, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])
