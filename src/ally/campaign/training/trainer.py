"""The training of one campaign, in this process or in one of its own, and the model it left.

Asking and answering never wait for it. One process at a time trains a campaign; the lock ends with its process. A
training that failed is on record in the store and is tried again, at once or after the next answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ally.campaign.settings import Settings
from ally.campaign.training import worker
from ally.campaign.training.schedule import LOCK, due, running
from ally.errors import InputError, StoreBusy, StoreError
from ally.sources import Samples
from ally.store import Store
from ally.types import Progress

if TYPE_CHECKING:
    from ally.learning.trained import Trained

PATIENCE = 24 * 3600.0
"""Seconds that an explicit training waits for one that is running."""
WAIT = 5.0
"""Seconds to wait for the lock: somebody may hold it for a moment, only to see whether a training is running."""


@dataclass(frozen=True, eq=False)
class Trainer:
    """``campaign.training``. Nothing here imports torch before it trains or loads a model."""

    store: Store
    settings: Callable[[], Settings]
    samples: Callable[[], Samples]
    clock: Callable[[], float]
    place: Callable[[], str | None]
    """Where another process can open the campaign with its source; None if it cannot."""

    def train(self, progress: Progress | None = None) -> int:
        """Trains on all labels, in this process; the number of the model."""
        before = self.store.models.newest()
        with self.store.exclusive(LOCK, PATIENCE) as mine:
            newest = self.store.models.newest()
            if newest is not None and newest != before and newest.seen == self.store.last_answer():
                return newest.number  # made by another process while this one waited
            if not mine:
                raise StoreBusy(
                    f"another process has been training {self.store.name} for {PATIENCE / 3600:g} hours; find it and "
                    "end it"
                )
            return self._run(progress)

    def start(self) -> None:
        """Starts a training in another process, whether it is due or not."""
        place = self.place()
        if place is None:
            raise InputError(
                "another process cannot open this campaign, because it, its source or its encoder lives in memory; use "
                "retrain(wait=True)"
            )
        worker.start(place, now=True, threads=self.settings().threads)

    def start_if_due(self) -> bool:
        """Starts a training in another process if one is due; whether it did."""
        settings = self.settings()
        if not settings.automatic or (place := self.place()) is None:
            return False
        if not due(self.store, settings.batch) or running(self.store):
            return False
        return worker.start(place, threads=settings.threads)

    def while_due(self, *, now: bool = False) -> int:
        """Trains in this process until no training is due, and with `now` at least once; how many models were made.

        It makes none while another process trains. Samples that take long to encode follow in the next training.
        """
        made, batch = 0, self.settings().batch
        while True:
            with self.store.exclusive(LOCK, WAIT) as mine:
                if not mine:
                    return made
                while now or due(self.store, batch):
                    now = False
                    try:
                        self._run(at_once=False)
                        made += 1
                    except StoreError:
                        # The store cannot record this failure either, so no attempt would be counted.
                        raise
                    except Exception as error:
                        print(f"training failed: {error}", file=sys.stderr)
            # Whoever answered while the lock was held saw a running training and started none.
            if not due(self.store, batch):
                return made

    @property
    def has_model(self) -> bool:
        """Whether there is a model that predicts; the first ranking, made without labels, is not one."""
        model = self.store.models.newest()
        return model is not None and "cold" not in model.report

    def model(self) -> Trained:
        """The newest model, trained on every label, with everything needed to predict; its `write` makes a .safetensors
        file. Its `about` has the number of its labels (``"labels"``) and the figure of the model that was measured
        (``"measured"``), which saw no held-out label."""
        from ally.campaign.training.kept import handed_model

        weights, number = self._newest()
        return handed_model(weights, f"model {number} of {self.store.name}")

    def measured(self) -> tuple[Trained, int]:
        """The newest model of the learning curve, which saw no held-out label, and its number."""
        from ally.campaign.training.kept import measured_model

        weights, number = self._newest()
        return measured_model(weights, f"model {number} of {self.store.name}"), number

    def _newest(self) -> tuple[bytes, int]:
        """What the store keeps of the newest model, and its number."""
        model = self.store.models.newest()
        weights = None if model is None else self.store.models.weights(model.number)
        if model is None or weights is None:
            raise InputError("there is no trained model yet; label samples of at least two classes, then retrain")
        return weights, model.number

    def _run(self, progress: Progress | None = None, *, at_once: bool = True) -> int:
        from ally.campaign.training.run import train

        return train(self.store, self.samples, self.settings(), self.clock, progress, at_once=at_once)
