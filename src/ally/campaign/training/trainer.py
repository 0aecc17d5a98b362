"""Training of one campaign, in this process or another, and the resulting model.

Asking and answering never wait for it. One process at a time trains a campaign; the lock ends with its process. A
failed training is recorded in the store and retried, at once or after the next answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ally._renamed_arguments import renamed_arguments
from ally.campaign.permissions import AllowedModels
from ally.campaign.settings import Settings, current_settings
from ally.campaign.source import CampaignSource, SourceOptions
from ally.campaign.training import worker
from ally.campaign.training.schedule import LOCK, due, running
from ally.campaign.values import Suspect
from ally.checks import check_count
from ally.errors import InputError, StoreBusy, StoreError
from ally.store import Measure, Store
from ally.types import Progress

if TYPE_CHECKING:
    import pandas as pd

    from ally.learning.trained import Trained
    from ally.types import PlainModel

PATIENCE = 24 * 3600.0
"""Seconds that an explicit training waits for one that is running."""
WAIT = 5.0
"""Seconds to wait for the lock: a process may hold it briefly just to check whether a training is running."""


@dataclass(frozen=True, eq=False)
class Trainer:
    """``campaign.training``. Nothing here imports torch before it trains or loads a model."""

    store: Store
    source: CampaignSource
    clock: Callable[[], float]

    def train(self, progress: Progress | None = None) -> int:
        """Train on all labels in this process; returns the model's number."""
        before = self.store.models.newest()
        with self.store.exclusive(LOCK, PATIENCE) as mine:
            newest = self.store.models.newest()
            if newest is not None and newest != before and newest.seen == self.store.answers.last_number():
                return newest.number  # made by another process while this one waited
            if not mine:
                raise StoreBusy(
                    f"another process has been training {self.store.name} for {PATIENCE / 3600:g} hours; find it and "
                    "end it"
                )
            return self._run(progress)

    def start(self) -> None:
        """Start a training in another process, whether due or not."""
        place = self.source.elsewhere()
        if place is None:
            raise InputError(
                "another process cannot open this campaign, because it, its source or its encoder lives in memory; use "
                "retrain(wait=True)"
            )
        worker.start(place, self.store.id, now=True, threads=self._settings.threads)

    def start_if_due(self) -> bool:
        """Start a training in another process if one is due; returns whether it did."""
        settings = self._settings
        if not settings.automatic or (place := self.source.elsewhere()) is None:
            return False
        if not due(self.store, settings.batch) or running(self.store):
            return False
        return worker.start(place, self.store.id, threads=settings.threads)

    def while_due(self, *, now: bool = False) -> int:
        """Train in this process until no training is due, and with `now` at least once; returns the number of models
        made.

        It makes none while another process trains. Samples that take long to encode follow in the next training.
        """
        made, batch = 0, self._settings.batch
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
            # Anyone who answered while the lock was held saw a running training and did not start one.
            if not due(self.store, batch):
                return made

    @property
    def _settings(self) -> Settings:
        return current_settings(self.store)

    @property
    def has_model(self) -> bool:
        """Whether there is a model that can predict; the first ranking, made without labels, does not count."""
        model = self.store.models.newest()
        return model is not None and "cold" not in model.report

    def model(self) -> Trained:
        """The newest model, trained on every label, with everything needed to predict; its `write` makes a .safetensors
        file. Its `about` has the number of its labels (``"labels"``) and the figure of the model that was measured
        (``"measured"``), which saw no held-out label."""
        from ally.campaign.training.models import handed_model

        weights, number = self._newest()
        return handed_model(weights, f"model {number} of {self.store.name}", AllowedModels(self.store.id))

    def plain_model(self, name: PlainModel) -> Trained:
        """A linear model or trees, trained on what the newest model says of the campaign's samples. Unlike label
        spreading, it keeps nothing of the pool."""
        from ally.data.encoders.samples import seen_by
        from ally.learning.distil import distil

        trained, samples = self.model(), self.source.samples
        known = {problem.id for problem in samples.problems}
        ids = [sample.id for sample in self.store.samples.all() if not sample.gone and sample.id not in known]
        return distil(trained, seen_by(samples, trained.about).features(ids), name)

    def measured(self) -> tuple[Trained, int]:
        """The newest model of the learning curve, which saw no held-out label, and its number."""
        from ally.campaign.training.models import measured_model

        weights, number = self._newest()
        return measured_model(weights, f"model {number} of {self.store.name}", AllowedModels(self.store.id)), number

    def evaluate(self) -> Measure:
        """The newest model on the evaluation sample as it is labelled now; recorded."""
        from ally.campaign.training.data import gather
        from ally.campaign.training.measures import evaluation

        settings = self._settings
        if settings.evaluate == "cv":
            raise InputError("no samples are held out, as evaluate='cv'; each training measures by cross-validation")
        trained, number = self.measured()
        samples = self.source.samples
        data = gather(self.store, samples, settings, 0)
        if not len(data.evaluate):
            raise InputError("no held-out sample is labelled yet; keep answering queries, they include some")
        found = evaluation(trained, samples, data.evaluate, data.training, settings)
        self.store.models.put_measures(number, found)
        return found[0]

    def hold_out(self, n: int) -> int:
        """Grow the evaluation sample to n samples, drawing the new ones at random from samples never asked about;
        returns how many were added."""
        settings = self._settings
        more = check_count("evaluate", n) - settings.held_out
        if more <= 0:
            raise InputError.about(
                "evaluate", n, f"is not more than the {settings.held_out} samples already held out; it can only grow"
            )
        if not settings.held_out_share:
            raise InputError("the share of queries for held-out samples is 0; change held_out_share first, to 0.25 say")
        added = self.store.samples.reserve("evaluate", more, self.clock())
        self.store.change_settings(
            lambda kept: replace(Settings.from_json(kept), evaluate=settings.held_out + more).to_json()
        )
        self.store.log(self.clock(), "settings", {"evaluate": settings.held_out + more})
        return len(added)

    def suspects(self, n: int, by: Literal["duals", "loss"] = "duals") -> list[Suspect]:
        """At most n labels that may be wrong, most suspicious first; labels changed since the training are left out."""
        if by not in ("duals", "loss"):
            raise InputError.about("by", by, "; pass 'duals' or 'loss'")
        model = self.store.models.newest()
        entries = [] if model is None else model.report.get("suspects", [])
        if by == "loss":
            if entries and not any("loss" in entry for entry in entries):
                raise InputError("the newest model was trained before losses were kept; train again: ally retrain")
            known = (entry for entry in entries if entry["loss"] is not None)
            entries = sorted(known, key=lambda entry: -float(entry["loss"]))
        else:
            entries = [entry for entry in entries if (entry["dual"] or 0) > 0]
            entries.sort(key=lambda entry: (-float(entry["dual"]), -float(entry.get("loss") or 0.0)))
        labels = self.store.answers.labels(self._settings.store_policy)
        touched = {answer.row for answer in self.store.answers.all(0 if model is None else model.seen)}
        standing = [entry for entry in entries if entry["row"] in labels and entry["row"] not in touched][:n]
        ids = self.store.samples.ids([entry["row"] for entry in standing])
        return [
            Suspect(
                id,
                label.value,
                label.annotator,
                entry["dual"],
                entry["predicted"],
                entry["probability"],
                entry.get("loss"),
            )
            for entry, id in zip(standing, ids, strict=True)
            for label in [labels[entry["row"]]]
        ]

    @renamed_arguments(every_class="probabilities")
    def predict(
        self, source: Any = None, *, probabilities: bool = False, **options: Unpack[SourceOptions]
    ) -> pd.DataFrame:
        """See `Campaign.predict`."""
        from ally.campaign.training.predict import predict

        trained = self.model()
        if source is not None:
            return predict(trained, source, options, campaign=self.source, probabilities=probabilities)
        labelled = self.store.answers.labels(self._settings.store_policy)
        ids = [sample.id for sample in self.store.samples.all() if not sample.gone and sample.row not in labelled]
        return self._predicted(trained, ids, probabilities)

    def predictions(self, ids: Sequence[str]) -> pd.DataFrame:
        """What the newest model of the curve says of samples of the campaign, labelled or not, with the probability of
        every class; it saw no held-out label. Samples that cannot be read are left out."""
        return self._predicted(self.measured()[0], ids, probabilities=True)

    def _predicted(self, trained: Trained, ids: Sequence[str], probabilities: bool) -> pd.DataFrame:
        from ally.campaign.training.predict import predict_samples

        samples = self.source.samples
        gone = set(samples.missing(ids))
        return predict_samples(trained, samples, [id for id in ids if id not in gone], probabilities=probabilities)

    def _newest(self) -> tuple[bytes, int]:
        """The stored form of the newest model, and its number."""
        model = self.store.models.newest()
        weights = None if model is None else self.store.models.weights(model.number)
        if model is None or weights is None:
            raise InputError("there is no trained model yet; label samples of at least two classes, then retrain")
        return weights, model.number

    def _run(self, progress: Progress | None = None, *, at_once: bool = True) -> int:
        from ally.campaign.training.run import train

        return train(
            self.store,
            lambda: self.source.samples,
            self._settings,
            self.clock,
            progress,
            at_once=at_once,
            cache=self.source.cache,
        )
