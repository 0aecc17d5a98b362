"""Whether training is due, and how the last one went; read from the store only, so every process sees the same."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from ally.errors import StoreReadOnly
from ally.store import Event, Store, StoredModel

LOCK = "training"
"""The store lock held while training."""
BEGUN = "training begun"
UNENCODED = "unencoded"
"""Key in a training's report: unlabelled samples left out because they are not encoded yet."""
ATTEMPTS = 3
"""Failed trainings on the same answers before waiting for new ones."""

TrainingState: TypeAlias = Literal["none", "running", "done", "failed", "interrupted"]


class LastTraining(NamedTuple):
    """The state of the last training, and its error if it failed."""

    state: TrainingState
    error: str | None = None
    began: float | None = None
    """When the running training started."""


def begin(store: Store, now: float, detail: dict[str, Any]) -> int:
    """Record the start of a training; its number goes into the model's report as ``begun``."""
    return store.log(now, BEGUN, {**detail, "seen": store.answers.last_number()})


def waiting(store: Store) -> int:
    """Answers that no model has seen."""
    model = store.models.newest()
    return store.answers.last_number() - (0 if model is None else model.seen)


def due(store: Store, batch: int) -> bool:
    """There is no model yet, or `batch` new answers, or samples that were not encoded in time for the last training;
    and training on these has not failed too often."""
    model, last = store.models.newest(), store.answers.last_number()
    if model is not None and last - model.seen < batch and not model.report.get(UNENCODED):
        return False
    after = 0 if model is None else int(model.report.get("begun", 0))
    attempts = [event for event in _begun(store, after) if event.detail.get("seen") == last]
    return len(attempts) < ATTEMPTS


def running(store: Store) -> bool:
    try:
        with store.exclusive(LOCK) as mine:
            return not mine
    except StoreReadOnly:
        # A store that cannot be written cannot be trained.
        return False


def last_training(store: Store) -> LastTraining:
    begun = _begun(store)
    if running(store):
        return LastTraining("running", None, begun[-1].at if begun else None)
    if not begun:
        return LastTraining("none")
    mine = [model for model in store.models.all() if model.report.get("begun") == begun[-1].number]
    return _outcome(mine[-1]) if mine else LastTraining("interrupted")


def _outcome(model: StoredModel) -> LastTraining:
    if model.state == "good":
        return LastTraining("done")
    error = model.report.get("error")
    return LastTraining("failed", str(error)) if error else LastTraining("interrupted")


def last_begun(store: Store) -> Event | None:
    """The start of the last training without a model yet, or else of the newest model's training."""
    model = store.models.newest()
    since = 0 if model is None else max(0, int(model.report.get("begun", 0)) - 1)
    begun = _begun(store, since)
    return begun[-1] if begun else None


def _begun(store: Store, after: int = 0) -> list[Event]:
    return [event for event in store.events(after) if event.kind == BEGUN]
