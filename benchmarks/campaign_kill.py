"""Kills annotators and the retrainer of a campaign at random moments and checks after each that no acknowledged label
is lost.

    python benchmarks/campaign_kill.py [--kills 10000] [--backend sqlite postgresql] [--campaign-kills 250] [--seed 0]

Three annotators ask, tell, skip and undo by keys; a fourth process trains whenever a training is due, or writes
rankings of the whole pool. Each kill is a SIGKILL to one of the four, every tenth to all of them at once; with
PostgreSQL some are to the server too. After each the campaign is opened afresh: it must hold every acknowledged answer
exactly once and hand out a sample; open within a second when there is nobody to wait for; when the retrainer was
killed, have its lock free within a second, say how far it is and that the training was interrupted if it was, and serve
a model that is whole; and every other time that all were killed, complete a new training.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from ally import Campaign
from ally.campaign.training.models import handed_model, measured_model
from ally.campaign.training.run import AHEAD
from ally.campaign.training.schedule import BEGUN, LOCK
from ally.store import Event, Store, StoredModel
from ally.store import open as open_store
from store_clients import CLASSES, LONG, annotate, kill, retrain, start, warm_up, write_long_rankings
from store_history import Line, Record, missing, parse, violations
from store_server import Crash, NewPlace, places

ANNOTATORS = 3
TRAINER = ANNOTATORS
"""The place of the retrainer among the processes."""
TRAINER_SHARE = 0.4
"""Of the kills of one process."""
BATCH, KEPT, PAUSE = 3, 20, 0.2
LEASE = 5.0
ROWS, COLUMNS, LOOKED_AT = 2500, 5, 200
MODEL = "mlp"
"""Trained in a second; the default takes several, and what is killed is the same."""
WITHIN = 1.0
"""Seconds to open a campaign, and for the lock of a dead process to be free. Time in which this process was ready to
run and other programs had all cores is not counted, where the system tells it (Linux)."""
LIFE, LONG_LIFE, LONG_SHARE = 0.06, 0.6, 0.15
"""Mean seconds between kills, most of them and some: short lives are hit while they begin, long ones while they write a
model."""
ALL_EVERY, TRAIN_EVERY, ALL_AT = 10, 20, 5
"""Which kills are of all processes, and after which of those a training is waited for; not those with a crash of the
server, which is to hit others at work."""


def clock() -> float:
    """Seconds, without those spent in waiting for a core."""
    schedule = Path("/proc/self/schedstat")
    waited = int(schedule.read_text().split()[1]) / 1e9 if schedule.exists() else 0.0
    return time.perf_counter() - waited


def create(url: str, folder: Path) -> None:
    source = folder / "table.csv"
    if not source.exists():
        values = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).round(4).tolist()
        lines = [",".join([f"s{row}", *map(str, line)]) for row, line in enumerate(values)]
        source.write_text("\n".join(["id,a,b,c,d,e", *lines]), encoding="utf-8")
    settings = {
        "classes": CLASSES,
        "batch": BATCH,
        "evaluate": 20,
        "look_at": LOOKED_AT,
        "model": MODEL,
        "lease_seconds": LEASE,
        "automatic": False,
    }
    Campaign.create(url, source, **settings).close()  # type: ignore[arg-type]


class Trainings:
    """What became of trainings, read from the record; the naive twin of `ally.campaign.training.schedule`. Nobody may
    train meanwhile."""

    def __init__(self) -> None:
        self.begun = 0
        self.whole = 0
        self.hit: Counter[str] = Counter()

    def look(self, store: Store, status: str, *, crashed: bool, counted: bool) -> list[str]:
        """What is wrong after the retrainer was killed; `counted` if it was, and not merely absent."""
        events = [event for event in store.events(max(0, self.begun - 1)) if event.kind == BEGUN]
        last = events[-1] if events else None
        models = store.models.all()
        made = next((model for model in models if last is not None and model.report.get("begun") == last.number), None)
        if counted:
            self.hit[self._state(store, last, made)] += 1
        self.begun = last.number if last is not None else 0
        expected = "none" if last is None else "done" if made is not None and made.state == "good" else "interrupted"
        if made is not None and "error" in made.report:
            expected = "failed"
        wrong = [] if status == expected else [f"the status says that the training is {status}, and it is {expected}"]
        if expected == "failed" and not crashed:
            wrong.append(f"a training failed: {made.report['error'] if made else ''}")
        return [*wrong, *self._broken(store)]

    def _state(self, store: Store, last: Event | None, made: StoredModel | None) -> str:
        if last is None or last.number == self.begun:
            return "before it began"
        what = "a long ranking: " if last.detail.get("what") == LONG else ""
        if made is None:
            return f"{what}before it was written" if what else "training"
        if made.state == "good":
            older = any(
                next(iter(store.models.ranking(number)), None) for number in range(max(1, made.number - 3), made.number)
            )
            return f"{what}clearing away the one before" if older else f"{what}done"
        return f"{what}writing"

    def _broken(self, store: Store) -> list[str]:
        """The model that serves has all of its ranking, and weights that load."""
        model = store.models.newest()
        if model is None or model.number == self.whole:
            return []
        ranked = [entry.row for entry in store.models.ranking(model.number)]
        length = model.report.get("ranking", (1 + AHEAD) * BATCH)
        weights = store.models.weights(model.number)
        if weights is not None:
            measured_model(weights)
            handed_model(weights)
        self.whole = model.number
        wrong = (
            [f"model {model.number} has {len(ranked)} samples in its ranking instead of {length}"]
            if len(ranked) != length
            else []
        )
        return [
            *wrong,
            *([f"model {model.number} has no weights"] if weights is None and not model.report.get("cold") else []),
        ]


class Watch:
    """Reads what is new in the logs and in the campaign, and compares."""

    def __init__(self, url: str, logs: list[Path]) -> None:
        self.url, self.logs = url, logs
        self.history: list[Line] = []
        self.record = Record()
        self.trainings = Trainings()
        self.opened: dict[bool, list[float]] = {True: [], False: []}
        self.locked: list[float] = [0.0]
        self.trained: list[float] = [0.0]
        self._read = dict.fromkeys(logs, 0)
        self._crashed = False

    def look(self, *, alone: bool, untrained: bool, crashed: bool) -> list[str]:
        """What is wrong after a kill. `exclusive`: nobody else runs; `untrained`: nobody trains; `crashed`: the server
        was killed too."""
        self._crashed |= crashed
        # Logs first: what they acknowledge by now must be found in the store afterwards.
        new = self._follow()
        self.history += new
        began = clock()
        with Campaign.open(self.url) as campaign:
            self.opened[alone].append(clock() - began)
            store = campaign._store
            wrong = (
                []
                if not alone or self.opened[True][-1] <= WITHIN
                else [f"the campaign took {self.opened[True][-1]:.2f} s to open"]
            )
            wrong += self._lock(store) if untrained else []
            campaign.release(campaign.ask(1, annotator="watch"))
            self.record.add(store.answers.all(since=len(self.record)))
            if untrained:
                state = campaign.status().training_state
                wrong += self.trainings.look(store, state, crashed=self._crashed, counted=True)
        return [*wrong, *(words for line in new for words in missing(line, self.record))]

    def train(self) -> list[str]:
        """A new training, while nobody else runs, completes."""
        began = time.perf_counter()
        process = start(partial(train_once, self.url))
        ended = os.waitpid(process, 0)[1]
        self.trained.append(time.perf_counter() - began)
        with Campaign.open(self.url) as campaign:
            state = campaign.status().training_state
            wrong = self.trainings.look(campaign._store, state, crashed=self._crashed, counted=False)
        return [*wrong, *([f"a training after all were killed is {state}"] if ended or state != "done" else [])]

    def close(self) -> list[str]:
        """The whole history against the whole record."""
        self.history += self._follow()
        with Campaign.open(self.url) as campaign:
            answers = list(campaign.answers.all())
            self.record.add(answers[len(self.record) :])
            labels = (
                [] if campaign.labels() == self.record.labels() else ["the labels are not those that the record gives"]
            )
            return [*violations(self.history, answers), *labels, *campaign.check()]

    def _lock(self, store: Store) -> list[str]:
        began = clock()
        with store.exclusive(LOCK, 10 * WITHIN) as mine:
            self.locked.append(clock() - began)
        return (
            []
            if mine and self.locked[-1] <= WITHIN
            else [f"the lock of a retrainer that was killed is not free after {WITHIN:g} s"]
        )

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


def train_once(url: str) -> None:
    with Campaign.open(url) as campaign:
        campaign.retrain()


class Crew:
    """The processes of one campaign: annotators, and in the last place the retrainer."""

    def __init__(self, url: str, logs: list[Path], rng: random.Random) -> None:
        self._url, self._logs, self._rng = url, logs, rng
        self._running = [0] * (len(logs) + 1)

    def start(self, places: list[int]) -> None:
        for place in places:
            self._running[place] = start(self._work(place))

    def _work(self, place: int) -> Callable[[], None]:
        if place == TRAINER:
            return partial(write_long_rankings if self._rng.random() < 0.25 else retrain, self._url)
        return partial(annotate, self._url, f"annotator{place}", self._logs[place], BATCH, keep=KEPT, pause=PAUSE)

    def kill(self, places: list[int]) -> None:
        for place in places:
            process, self._running[place] = self._running[place], 0
            if process and not kill(process):
                raise SystemExit(f"process {place} ended by itself; see the error above")

    @property
    def everyone(self) -> list[int]:
        return list(range(len(self._running)))


def run(
    url: str, folder: Path, kills: int, rng: random.Random, crash: Crash | None, crash_every: int
) -> tuple[Watch, int]:
    """One campaign; raises at the first broken promise. How often the server was killed besides."""
    create(url, folder)
    logs = [folder / f"annotator{number}.log" for number in range(ANNOTATORS)]
    for log in logs:
        log.unlink(missing_ok=True)
    crew, watch, crashes = Crew(url, logs, rng), Watch(url, logs), 0
    crew.start(crew.everyone)
    try:
        for done in range(1, kills + 1):
            time.sleep(rng.expovariate(1 / (LONG_LIFE if rng.random() < LONG_SHARE else LIFE)))
            alone = done % ALL_EVERY == ALL_AT
            victims = (
                crew.everyone if alone else [TRAINER if rng.random() < TRAINER_SHARE else rng.randrange(ANNOTATORS)]
            )
            crew.kill(victims)
            crashed = crash is not None and done % crash_every == 0
            if crash is not None and crashed:
                crash()
                crashes += 1
            wrong = watch.look(alone=alone, untrained=TRAINER in victims, crashed=crashed)
            wrong += watch.train() if done % TRAIN_EVERY == ALL_AT else []
            if wrong:
                raise SystemExit(f"after kill {done}: " + "; ".join(wrong[:5]))
            crew.start(victims)
    finally:
        crew.kill(crew.everyone)
    wrong = watch.close()
    if wrong:
        raise SystemExit(f"after {kills} kills: " + "; ".join(wrong[:5]))
    return watch, crashes


class Figures:
    """Of all campaigns of a backend so far."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.hit: Counter[str] = Counter()
        self.longest: dict[str, float] = {}
        self._began = time.perf_counter()

    def add(self, url: str, kills: int, crashes: int, watch: Watch) -> None:
        done = [line for line in watch.history if line.op == "done"]
        with open_store(url) as store:
            models = store.models.all()
        good = sum(model.state == "good" for model in models)
        self.counts.update(
            campaigns=1,
            kills=kills,
            server_crashes=crashes,
            answers=sum(answer.kind != "undo" for answer in watch.record.answers.values()),
            undos=len(watch.record.undos),
            acknowledged=sum(len(line.numbers) for line in done),
            acknowledged_undos=sum(line.call == "undo" for line in done),
            models=good,
            models_long=sum(model.state == "good" and "ranking" in model.report for model in models),
            models_interrupted=len(models) - good,
        )
        self.hit += watch.trainings.hit
        for name, seconds in {
            "open_seconds_max": watch.opened[True],
            "open_seconds_max_among_others": watch.opened[False],
            "lock_seconds_max": watch.locked,
            "train_seconds_max": watch.trained,
        }.items():
            self.longest[name] = max([self.longest.get(name, 0.0), *(round(value, 4) for value in seconds)])

    def __call__(self) -> dict[str, object]:
        seconds = round(time.perf_counter() - self._began, 1)
        return {**self.counts, **self.longest, "retrainer_hit_when": dict(sorted(self.hit.items())), "seconds": seconds}


def run_backend(
    backend: str, new: NewPlace, folder: Path, kills: int, each: int, seed: int, crash: Crash | None, crash_every: int
) -> dict[str, object]:
    """`each`: kills of one campaign, after which another begins: the record grows much faster here than where people
    label."""
    rng = random.Random(seed)
    figures = Figures()
    while figures.counts["kills"] < kills:
        part = min(each, kills - figures.counts["kills"])
        url = new()
        watch, crashes = run(url, folder, part, rng, crash, crash_every)
        figures.add(url, part, crashes, watch)
        if figures.counts["kills"] < kills:
            print(json.dumps({"backend": backend, **figures()}), file=sys.stderr, flush=True)
    return figures()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--backend", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    parser.add_argument("--campaign-kills", type=int, default=250)
    parser.add_argument("--server-crash-every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    warm_up()
    for backend in arguments.backend:
        with tempfile.TemporaryDirectory() as folder, places(backend, Path(folder)) as (new, crash):
            kills, each, every = (
                arguments.kills // len(arguments.backend),
                arguments.campaign_kills,
                arguments.server_crash_every,
            )
            figures = run_backend(backend, new, Path(folder), kills, each, arguments.seed, crash, every)
        print(json.dumps({"backend": backend, **figures}), flush=True)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
