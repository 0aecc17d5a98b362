"""How far a campaign is, read from its store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ally.campaign.advice import Advice, Evidence, Point, advise
from ally.campaign.settings import Settings
from ally.campaign.training.schedule import UNENCODED, last_training, waiting
from ally.campaign.values import METRIC, Held, ModelLine, RandomComparison, Status
from ally.encoders.cache import kept_vectors
from ally.encoders.samples import ENCODED
from ally.sources.export.answers import reads
from ally.store import Counts, Measure, Store, StoredModel

GIVEN = "source"
"""The annotator of labels that the source had from the beginning."""


def status_of(store: Store, settings: Settings, now: float, encoded_in: Path | None = None) -> Status:
    """`encoded_in` is the folder of the encoder's vectors."""
    counts, annotators, training = store.count(now, settings.store_policy), store.annotators(), last_training(store)
    given = counts.deciders.get(GIVEN, 0)
    annotators.pop(GIVEN, None)
    good = [model for model in store.models.all() if model.state == "good"]
    curve = _curve(store, good, METRIC[settings.task])
    newest = good[-1] if good else None
    bought = counts.labelled - given
    compared = newest.report.get("comparison") if newest else None
    pool, evaluate, validate = (counts.roles[role] for role in ("pool", "evaluate", "validate"))
    return Status(
        name=store.name,
        source=settings.place or "in memory",
        task=settings.task,
        strategy=settings.strategy,
        samples=counts.samples,
        free=counts.free,
        leased=counts.leased,
        skipped=counts.skipped,
        gone=counts.gone,
        labels=bought,
        given=given,
        training=pool.labelled,
        evaluate=Held(evaluate.samples, evaluate.labelled),
        validate=Held(validate.samples, validate.labelled),
        classes=_classes(counts) if settings.task == "classification" else {},
        annotators=annotators,
        disagreements=counts.disagreements,
        training_state=training.state,
        training_error=training.error,
        waiting=waiting(store),
        model=curve[-1] if curve else None,
        curve=tuple(curve),
        advice=_advice(settings, curve, bought),
        comparison=None if compared is None else RandomComparison(**compared),
        budget=settings.budget,
        notes=tuple(newest.report.get("notes", ())) if newest else (),
        encoder=settings.encoder,
        encoded=_encoded(settings, counts.samples, newest, encoded_in),
    )


def _encoded(settings: Settings, samples: int, newest: StoredModel | None, folder: Path | None) -> int | None:
    """How many samples have their vector, as this machine sees it; all of them, once a training has seen all."""
    about = settings.fingerprint.get(ENCODED)
    if about is None:
        return None
    if newest is not None and not newest.report.get(UNENCODED):
        return samples
    kept = 0 if folder is None else kept_vectors(folder, about["identity"], about["width"])
    elsewhere = 0 if newest is None else samples - int(newest.report[UNENCODED])
    return min(samples, max(kept, elsewhere))


def _classes(counts: Counts) -> dict[str, int]:
    """Samples by how their label reads; the store counts them by JSON text."""
    found: Counter[str] = Counter()
    for text, n in counts.classes.items():
        found[reads(json.loads(text))] += n
    return dict(found)


def _curve(store: Store, good: Sequence[StoredModel], metric: str) -> list[ModelLine]:
    figures: dict[int, dict[str, Measure]] = {}
    for number, measure in store.models.measures():
        figures.setdefault(number, {})[measure.name] = measure
    lines = []
    for model in good:
        mine = figures.get(model.number, {})
        scored, kappa, positive = mine.get(metric), mine.get("agreement"), mine.get("positive_duals")
        lines.append(
            ModelLine(
                number=model.number,
                at=model.at,
                labels=model.labels,
                metric=metric,
                value=None if scored is None else scored.value,
                low=None if scored is None else scored.low,
                high=None if scored is None else scored.high,
                evaluated_on=0 if scored is None else scored.n or 0,
                agreement=None if kappa is None else kappa.value,
                positive_duals=None if positive is None else positive.value,
            )
        )
    return lines


def _advice(settings: Settings, curve: Sequence[ModelLine], bought: int) -> Advice:
    points = [
        Point(line.labels, line.value, (line.high - line.low) / (2 * 1.96))
        for line in curve
        if line.value is not None and line.low is not None and line.high is not None and line.labels
    ]
    kappas = tuple(line.agreement for line in curve if line.agreement is not None)
    positive = curve[-1].positive_duals if curve else None
    return advise(
        Evidence(
            tuple(points),
            settings.batch,
            kappas,
            positive,
            settings.budget,
            bought,
            METRIC[settings.task],
            settings.evaluate > 0,
        )
    )
