"""How far a training is: stages, written to the store by whoever trains, and read by whoever asks.

A stage is put on record when it begins and at every tenth of it: a few dozen lines, however long a training takes. How
long it may still take is judged by the stages of the training before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ally.campaign.training.schedule import BEGUN, last_begun
from ally.campaign.values import Underway
from ally.store import Store
from ally.types import Progress

STAGE = "training stage"
STAGES = ("reading", "encoding", "choosing a learner", "training", "ranking", "measuring")
"""In their order. A training may leave some out."""
HEARD = {"encoding": "encoding", "choose a learner": "choosing a learner", "train": "training", "embed": "ranking"}
"""The stage that begins when a learner or an encoder reports this."""
STEPS = 10


class StageRecorder:
    """A `Progress` that puts stages on record, and passes on what it hears to `also`."""

    def __init__(self, store: Store, clock: Callable[[], float], begun: int, also: Progress | None) -> None:
        self._store, self._clock, self._begun, self._also = store, clock, begun, also
        self._place, self._step = -1, 0
        self._since = time.perf_counter()
        self.seconds: dict[str, float] = {}
        """What each stage took, the one that is under way left out."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._also is not None:
            self._also(stage, done, total)
        if stage not in HEARD:
            return
        self.enter(HEARD[stage])
        step = STEPS * min(done, total) // total if total else 0
        if STAGES[self._place] == HEARD[stage] and step > self._step:
            self._step = step
            self._write(step / STEPS)

    def enter(self, stage: str) -> None:
        """A stage begins, unless it or a later one has begun: models that are trained to measure belong to
        measuring."""
        place = STAGES.index(stage)
        if place > self._place:
            self.leave()
            self._place, self._step = place, 0
            self._write(0.0)

    def leave(self) -> None:
        """The stage that is under way has ended."""
        now = time.perf_counter()
        if self._place >= 0:
            self.seconds[STAGES[self._place]] = now - self._since
        self._since = now

    def _write(self, share: float) -> None:
        detail = {"begun": self._begun, "stage": STAGES[self._place], "share": share}
        self._store.log(self._clock(), STAGE, detail)


def underway(store: Store, now: float) -> Underway | None:
    """What is known of the training that is running; None before its first stage is on record."""
    begun = last_begun(store)
    if begun is None:
        return None
    mine = [event for event in store.events(begun.number) if event.kind in (STAGE, BEGUN)]
    if not mine or mine[-1].kind != STAGE:
        return None
    stage, newest = str(mine[-1].detail["stage"]), mine[-1]
    entered = next(event.at for event in mine if event.detail["stage"] == stage)
    before = store.models.newest()
    # The first ranking, made without labels, says nothing of a training.
    took: Mapping[str, float] = {} if before is None or "cold" in before.report else before.report.get("stages", {})
    share = float(newest.detail["share"])
    spent = max(0.0, now - entered)
    # Time went on since the share was put on record.
    rest = (newest.at - entered) * (1 - share) / share - (now - newest.at) if share else took.get(stage, 0.0) - spent
    rest = max(0.0, rest)
    if not took:
        return Underway(stage, share or None, rest if share else None, whole=False)
    later = STAGES[STAGES.index(stage) + 1 :]
    left = rest + sum(took.get(name, 0.0) for name in later)
    done = max(0.0, now - begun.at)
    return Underway(stage, done / (done + left) if done + left else None, left, whole=True)
